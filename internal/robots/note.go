package robots

import (
	"encoding/binary"
	"net/http"
	"time"
)

// A note stores an answer to a request for robots.txt, with the rules for one agent: the version, the
// status, the time, the Crawl-delay and the agent, then the rules and sitemaps as lines of a robots.txt.
const noteVersion = 1

// AppendNote appends a note of an answer that arrived at the given time. ok is false if there is
// nothing to keep: no answer, or rules that were dropped.
func (e Entry) AppendNote(dst []byte, agent string, at time.Time) (note []byte, ok bool) {
	status := uint64(http.StatusOK)
	switch {
	case e.rules == nil:
		return dst, false
	case e.state == stateUnavailable:
		status = http.StatusNotFound
	case e.state != stateOK:
		return dst, false
	}
	dst = binary.AppendUvarint(append(dst, noteVersion), status)
	dst = binary.AppendVarint(dst, at.Unix())
	dst = binary.AppendVarint(dst, int64(e.rules.delay))
	dst = append(binary.AppendUvarint(dst, uint64(len(agent))), agent...)
	return e.rules.appendFile(dst), true
}

// appendFile appends the rules and sitemaps as a robots.txt for all agents.
func (r *Rules) appendFile(dst []byte) []byte {
	dst = append(dst, "user-agent: *\n"...)
	for i := range r.literals {
		dst = r.literalRule(i).appendLine(dst)
	}
	for i := range r.wilds {
		dst = r.wildRule(i).appendLine(dst)
	}
	for _, url := range r.sitemaps {
		dst = append(append(append(dst, "sitemap: "...), url...), '\n')
	}
	return dst
}

func (r rule) appendLine(dst []byte) []byte {
	key := "disallow: "
	if r.allow {
		key = "allow: "
	}
	return append(r.appendSource(append(dst, key...)), '\n')
}

// ReadNote returns the answer that a note stores, and the time at which it arrived. It judges
// targets by the answer as [Policy.Read] does. ok is false if the note is for another agent or
// cannot be read.
func ReadNote(note []byte, agent string, targets [][]byte) (resp Response, at time.Time, ok bool) {
	if len(note) == 0 || note[0] != noteVersion {
		return resp, at, false
	}
	note = note[1:]
	number := func(n uint64, size int) uint64 {
		ok = ok && size > 0
		note = note[max(0, size):]
		return n
	}
	signed := func(n int64, size int) int64 { return int64(number(uint64(n), size)) }
	ok = true
	resp.Status = int(number(binary.Uvarint(note)))
	at = time.Unix(signed(binary.Varint(note)), 0)
	delay := time.Duration(signed(binary.Varint(note)))
	size := number(binary.Uvarint(note))
	if !ok || size > uint64(len(note)) || string(note[:size]) != agent {
		return Response{}, at, false
	}
	if classOf(resp.Status) == answered {
		resp.rules = Parse(note[size:], agent)
		resp.rules.delay = max(0, delay)
		resp.verdicts, _ = resp.rules.AllowedAll(targets)
	}
	return resp, at, true
}
