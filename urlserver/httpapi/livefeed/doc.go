// Package livefeed looks at a running daemon for those who watch it: one Watcher for all
// viewers. It keeps an hour's history, a sample every ten seconds; everything else is looked
// at only while somebody does.
package livefeed
