package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is the resources that a process has used.
type usage struct {
	CPU     time.Duration // user and system, since its start
	RSS     int           // bytes
	FileRSS int           // of these: pages of files, nearly all of them the program's own
	PeakRSS int
}

func readUsage() (u usage, err error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, err
	}
	u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u, err
	}
	if u.RSS, err = statusBytes(string(status), "VmRSS:"); err != nil {
		return u, err
	}
	if u.FileRSS, err = statusBytes(string(status), "RssFile:"); err != nil {
		return u, err
	}
	u.PeakRSS, err = statusBytes(string(status), "VmHWM:")
	return u, err
}

// statusBytes returns a size from the text of /proc/PID/status.
func statusBytes(status, key string) (int, error) {
	_, after, ok := strings.Cut(status, key)
	fields := strings.Fields(after)
	if !ok || len(fields) < 2 || fields[1] != "kB" {
		return 0, fmt.Errorf("/proc/self/status has no %s in kB", key)
	}
	n, err := strconv.Atoi(fields[0])
	return n << 10, err
}

// collection is the result of one garbage collection.
type collection struct {
	Live  int           // live bytes of heap
	Wall  time.Duration // from start to the end of sweeping
	Pause time.Duration // stop-the-world time
	Mark  time.Duration // CPU time of marking, all cores
}

// collect runs a garbage collection, after another one that removes what is garbage already.
func collect() collection {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mark, start := markTime(), time.Now()
	runtime.GC()
	c := collection{Wall: time.Since(start), Mark: markTime() - mark}
	runtime.ReadMemStats(&after)
	c.Live = int(after.HeapAlloc)
	c.Pause = time.Duration(after.PauseTotalNs - before.PauseTotalNs)
	return c
}

// markTime returns the CPU time of marking since the start, without marking by idle processors.
func markTime() time.Duration {
	samples := []metrics.Sample{
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
	}
	metrics.Read(samples)
	sum := 0.0
	for _, s := range samples {
		sum += s.Value.Float64()
	}
	return time.Duration(sum * float64(time.Second))
}
