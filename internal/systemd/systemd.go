// Package systemd tells the service manager how a daemon is doing, by systemd's protocol
// sd_notify(3): one datagram each to the socket that the environment names.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// What a daemon may tell.
const (
	Ready     = "READY=1"     // started, or done with reloading
	Reloading = "RELOADING=1" // until Ready
	Stopping  = "STOPPING=1"
	Watchdog  = "WATCHDOG=1" // alive
)

// Socket is where to tell it. The zero value tells nobody.
type Socket struct{ addr *net.UnixAddr }

// FromEnv is the socket that NOTIFY_SOCKET names; without it, nobody is told.
func FromEnv() Socket {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return Socket{}
	}
	return Socket{&net.UnixAddr{Name: name, Net: "unixgram"}} // package net knows "@" for abstract names
}

// tellTime is for one datagram: a manager that does not read must not hold up the daemon.
const tellTime = 5 * time.Second

// Tell sends states. It fails where the manager does not take them within 5 seconds.
func (s Socket) Tell(state string) error {
	if s.addr == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, s.addr)
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(tellTime)); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	if _, err = conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return nil
}

// Patience is how long the manager waits between two of Watchdog before it takes this
// process for hung; 0: it does not wait for them.
func Patience() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0 // meant for another
	}
	const most = 1 << 50 // keeps the product far from overflow
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 || us > most {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
