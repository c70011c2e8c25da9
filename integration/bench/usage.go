package main

import (
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what a round took: time, the CPU time of this process (the database's is not in it), and its memory at most.
type usage struct {
	wall, cpu time.Duration
	peak      int64
}

func measure(round func() error) (usage, error) {
	runtime.GC()
	debug.FreeOSMemory()
	resetPeak()
	cpu, began := cpuTime(), time.Now()
	err := round()
	return usage{wall: time.Since(began), cpu: cpuTime() - cpu, peak: peak()}, err
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// resetPeak makes Linux forget the highest resident size so far: proc(5), clear_refs.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peak is the highest resident size since, in bytes; 0 where the system does not tell.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}

func withDatabase(raw, name string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}
