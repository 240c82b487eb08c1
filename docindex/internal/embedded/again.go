package embedded

import "time"

// AgainAt returns the second from which a document is due again. again is that second by the time
// of day, now is the store's time in ms. If the clock of the machine was set back since the start
// of the store, a document that is to come back in an hour does so an hour later by the store's
// time: by the time of day alone it would be due at once, and after each fetch again. A restart
// reads the time of day, so the documents on disk are then late by as much as the clock was set
// back.
func AgainAt(again, now int64) int64 {
	ahead := (now - time.Now().UnixMilli()) / 1000
	return again + max(0, ahead)
}
