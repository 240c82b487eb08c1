// Package protocol is the line protocol between daemon and spiders: what a line says, to bytes and back, and cutting
// a stream into lines. It neither reads by itself nor acts on what it reads. PROTOCOL.md is the contract.
package protocol
