// Package livefeed publishes the state of a running daemon as server-sent events. One Feed
// serves all subscribers. It samples the daemon every ten seconds and keeps the samples of an
// hour; it reads everything else only while it has subscribers.
package livefeed
