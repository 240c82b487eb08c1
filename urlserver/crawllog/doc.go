// Package crawllog writes a line of JSON for each outcome to a file ([log] crawl), and rotates the
// file.
//
// The engine's goroutine hands outcomes over and never waits for the disk. One goroutine writes. If
// the disk is slow or full, outcomes wait within a bound; beyond it the newest lines are lost and
// counted, and the crawl goes on.
package crawllog
