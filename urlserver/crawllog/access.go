package crawllog

import "golang.org/x/sys/unix"

const enter = unix.X_OK

// writable asks the system whether this process may write to a file, or with enter make files in a
// folder.
func writable(path string, also uint32) error { return unix.Access(path, unix.W_OK|also) }
