package main

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"urlserver/configs"
)

// memoryLimit returns how many bytes an index in memory may take. The default of docindex.memory
// stands for three quarters of the memory that there is.
func memoryLimit(setting int) int64 {
	if setting != configs.Default().DocIndex.Memory {
		return int64(setting)
	}
	most := int64(machineMemory())
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err == nil {
		most = min(most, groupLimit("/sys/fs/cgroup", string(groups)))
	}
	return most / 4 * 3
}

// groupLimit returns the least memory limit of a process's control groups and of those above them.
// root is where the control groups are mounted, groups is the text of /proc/self/cgroup (see
// cgroups(7)).
func groupLimit(root, groups string) int64 {
	least := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		dir, file := root, "memory.max"
		switch part[1] {
		case "":
		case "memory":
			dir, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			text, _ := os.ReadFile(path.Join(dir, group, file))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				least = min(least, n)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}
