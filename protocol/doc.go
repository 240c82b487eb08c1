// Package protocol is the line protocol between daemon and spiders. It splits a stream into lines,
// parses lines and writes them. It does no I/O of its own and does not act on what it parses.
// PROTOCOL.md is the contract.
package protocol
