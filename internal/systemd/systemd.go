// Package systemd reports the state of a daemon to the service manager, by the protocol
// sd_notify(3): each state is a datagram to the socket that the environment names.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// States.
const (
	Ready     = "READY=1"     // the start, or a reload, is complete
	Reloading = "RELOADING=1" // until Ready
	Stopping  = "STOPPING=1"
	Watchdog  = "WATCHDOG=1" // the daemon is alive
)

// Socket is the service manager's socket. The zero value is none.
type Socket struct{ addr *net.UnixAddr }

// FromEnv returns the socket that NOTIFY_SOCKET names, or none.
func FromEnv() Socket {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return Socket{}
	}
	return Socket{&net.UnixAddr{Name: name, Net: "unixgram"}} // package net handles "@" of abstract names
}

// notifyTimeout keeps a manager that does not read from blocking the daemon.
const notifyTimeout = 5 * time.Second

// Notify sends a state. It fails if the manager does not receive it within 5 seconds. Without a
// socket it does nothing.
func (s Socket) Notify(state string) error {
	if s.addr == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, s.addr)
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyTimeout)); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	if _, err = conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return nil
}

// WatchdogInterval returns the time within which the manager expects the next Watchdog before it
// considers the process hung, from WATCHDOG_USEC; 0 if it expects none.
func WatchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0 // another process is meant
	}
	const most = 1 << 50 // a longer one could overflow
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 || us > most {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
