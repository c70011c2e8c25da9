package program

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// killDelay is how long what got SIGKILL may take to end. Only what the relay's user may not kill, or the system holds, is
// still there then.
const killDelay = 300 * time.Millisecond

// signalSession sends a signal to all of a session, and tells whether something else than its leader was alive to get it.
// The leader's group comes first, in one call that no fork escapes: one that is under way when the signal comes is begun
// again after it (fork(2), ERESTARTNOINTR). The groups beside it are those of job control (set -m) and of timeout(1). None
// can have the number of one that is gone, as long as the leader is not reaped or anything of the session is there.
func signalSession(session int, s syscall.Signal) (alive bool) {
	_ = syscall.Kill(-session, s)
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // what was read of it counts
	told := map[int]bool{session: true}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == session || sessionOf(pid) != session {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil && group > 1 && !told[group] {
			told[group] = true // once: many programs take a second SIGTERM as an order to end at once
			_ = syscall.Kill(-group, s)
		}
		alive = alive || isAlive(pid) && syscall.Kill(pid, 0) == nil
	}
	return alive
}

// endSession kills a session, again and again until nothing of it is alive but its leader, or it is late.
func endSession(session int, late time.Time) {
	for signalSession(session, syscall.SIGKILL) && time.Now().Before(late) {
		<-time.After(time.Millisecond)
	}
}

// sessionOf is the session that a process is in; 0 where there is no such process.
func sessionOf(pid int) int {
	session, _, err := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if err != 0 {
		return 0
	}
	return int(session)
}

// isAlive tells whether a process is more than an exit code that nobody has taken yet (proc_pid_stat(5)).
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	return err == nil && !bytes.HasPrefix(rest, []byte(" Z")) && !bytes.HasPrefix(rest, []byte(" X"))
}
