// Package robots reads, fetches and applies robots.txt as RFC 9309 says.
//
// [Parse] turns a file into immutable [Rules] for one agent. [Client] makes one request; a [Fetch]
// says which request comes next while a site redirects; a [Policy] turns the answer into what is in
// force until when. Fetch, Policy and [Entry] are pure: they neither wait, lock nor read a clock.
//
// Where the RFC leaves room, the politer reading wins, but for the leniencies that large crawlers
// share: frequent misspellings of keys, a missing colon, a byte order mark, UTF-16.
package robots
