package main

import (
	"math"
	"syscall"
)

// machineMemory returns the bytes of RAM. The systemd unit hides /proc/meminfo.
func machineMemory() int {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return math.MaxInt
	}
	return int(uint64(info.Totalram) * uint64(info.Unit))
}
