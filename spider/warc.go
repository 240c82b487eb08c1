package spider

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"time"
)

// field is a line of a WARC record's header.
type field struct{ name, value string }

// exchange returns a request and its answer as WARC 1.1 records, the response first. Each is a gzip
// member (annex D). Bodies are as sent, without the transfer coding. Heads are rebuilt, because
// net/http does not keep the order and the case of names. An exchange over HTTP/2 is written in the
// form of HTTP/1.1, with WARC-Protocol.
func exchange(a answer) []byte {
	id := recordID()
	common := []field{
		{name: "WARC-Date", value: warcDate(a.at)},
		{name: "WARC-Target-URI", value: string(a.url.Text())},
		{name: "WARC-IP-Address", value: a.addr.String()},
	}
	if a.proto == "HTTP/2.0" {
		common = append(common, field{name: "WARC-Protocol", value: "h2"})
	}
	response := append([]field{{name: "WARC-Type", value: "response"}, {name: "WARC-Record-ID", value: id}},
		common...)
	response = append(response, field{name: "WARC-Payload-Digest", value: digest(a.body)})
	if a.cut != "" {
		response = append(response, field{name: "WARC-Truncated", value: string(a.cut)})
	}
	response = append(response, field{name: "Content-Type", value: "application/http; msgtype=response"})

	request := append([]field{{name: "WARC-Type", value: "request"},
		{name: "WARC-Record-ID", value: recordID()}}, common...)
	request = append(request,
		field{name: "WARC-Concurrent-To", value: id},
		field{name: "Content-Type", value: "application/http; msgtype=request"})

	var b bytes.Buffer
	writeRecord(&b, response, a.responseHead(), a.body)
	writeRecord(&b, request, a.requestHead(), nil)
	return b.Bytes()
}

// warcInfo returns the first record of a file.
func warcInfo(file, software string, now time.Time) []byte {
	var b bytes.Buffer
	writeRecord(&b, []field{
		{name: "WARC-Type", value: "warcinfo"},
		{name: "WARC-Record-ID", value: recordID()},
		{name: "WARC-Date", value: warcDate(now)},
		{name: "WARC-Filename", value: file},
		{name: "Content-Type", value: "application/warc-fields"},
	}, fmt.Appendf(nil, "software: %s\r\nformat: WARC File Format 1.1\r\n", software), nil)
	return b.Bytes()
}

// writeRecord appends a record to b. Its block is head and body; body is the part that may be
// large.
func writeRecord(b *bytes.Buffer, header []field, head, body []byte) {
	z := gzip.NewWriter(b) // a bytes.Buffer never fails, so no write to z fails
	fmt.Fprint(z, "WARC/1.1\r\n")
	for _, f := range header {
		fmt.Fprintf(z, "%s: %s\r\n", f.name, f.value)
	}
	fmt.Fprintf(z, "WARC-Block-Digest: %s\r\n", digest(head, body))
	fmt.Fprintf(z, "Content-Length: %d\r\n\r\n", len(head)+len(body))
	z.Write(head)
	z.Write(body)
	fmt.Fprint(z, "\r\n\r\n")
	z.Close()
}

// digest returns SHA-1 in base 32. Archives compare payloads by it.
func digest(parts ...[]byte) string {
	h := sha1.New()
	for _, p := range parts {
		h.Write(p)
	}
	return "sha1:" + base32.StdEncoding.EncodeToString(h.Sum(nil))
}

func warcDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// recordID returns a random UUID (RFC 9562, version 4) as a URN.
func recordID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
