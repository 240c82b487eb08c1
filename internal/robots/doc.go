// Package robots reads, fetches and applies robots.txt as RFC 9309 says.
//
// [Parse] turns a file into immutable [Rules] for one agent. [Client] makes one request; a [Fetch]
// returns the next request while a site redirects; a [Policy] decides which rules are in force, and
// until when. Fetch, Policy and [Entry] are pure: they do not wait, lock or read a clock.
//
// Where the RFC leaves a choice, the package takes the politer one. Like other large crawlers it
// accepts frequent misspellings of keys, a missing colon, a byte order mark, and UTF-16.
package robots
