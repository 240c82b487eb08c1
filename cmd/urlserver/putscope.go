package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"urlserver/docindex/export"
	"urlserver/internal/clihelp"
	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

// maxSameSite bounds standard input for --same-site, which is read as a whole.
const maxSameSite = 256 << 20

// anyDepth is the flag --depth of a crawl without that bound.
const anyDepth = -1

// putScope is what the flags of put say of the crawl.
type putScope struct {
	crawl    string
	domains  []string
	hosts    []string
	deny     []string
	depth    int
	pages    int64
	sameSite bool
}

func (f *putScope) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.crawl, "crawl", "", "`ID` of the crawl that the URLs belong to")
	cmd.Flags().StringArrayVar(&f.domains, "domain", nil, "crawl this `domain` and all hosts below it")
	cmd.Flags().StringArrayVar(&f.hosts, "host", nil, "crawl this `host`")
	cmd.Flags().StringArrayVar(&f.deny, "deny", nil, "crawl no URL that this `pattern` (RE2) matches")
	cmd.Flags().IntVar(&f.depth, "depth", anyDepth,
		"follow links so many times from the URLs that are put; -1: any number")
	cmd.Flags().Int64Var(&f.pages, "max-pages", 0, "crawl so many URLs; 0: any number")
	cmd.Flags().BoolVar(&f.sameSite, "same-site", false, "crawl the registered domains of the URLs that are put")
}

// bounded reports whether the flags say anything of a scope.
func (f *putScope) bounded() bool {
	return len(f.domains)+len(f.hosts)+len(f.deny) > 0 || f.depth != anyDepth || f.pages != 0 || f.sameSite
}

// apply sets the scope of the crawl, if the flags say one. It returns the crawl ID, "" for none, and
// what to read instead of standard input.
func (f *putScope) apply(ctx context.Context, c *client, files []string, in io.Reader) (string, io.Reader, error) {
	if !f.bounded() {
		return f.crawl, in, nil
	}
	s := scope.Scope{Domains: f.domains, Hosts: f.hosts, Deny: f.deny, MaxPages: f.pages}
	if f.depth != anyDepth {
		s.MaxDepth = &f.depth
	}
	if f.sameSite {
		sites, rest, err := sitesOf(files, in)
		if err != nil {
			return "", nil, err
		}
		s.Domains, in = append(s.Domains, sites...), rest
	}
	s, err := s.Normal()
	if fault, ok := errors.AsType[*scope.Fault](err); ok {
		return "", nil, clihelp.Usagef("--%s: %s", flagOf[fault.Member], fault.Why)
	}
	if err != nil {
		return "", nil, err
	}
	if f.crawl == "" {
		f.crawl = nameOf(s)
	}
	body, _ := json.Marshal(map[string]any{"scope": s}) // cannot fail
	var answer json.RawMessage
	_, err = c.callURL(ctx, http.MethodPut, c.crawlURL(f.crawl), "application/json",
		bytes.NewReader(body), &answer)
	return f.crawl, in, err
}

// flagOf is the flag of a scope's member.
var flagOf = map[string]string{
	"domains": "domain", "hosts": "host", "deny": "deny", "max_depth": "depth", "max_pages": "max-pages",
}

// nameOf returns the crawl ID of a scope for which no ID was given. It depends on the scope alone,
// so a URL that is put twice with the same flags is known the second time.
func nameOf(s scope.Scope) string {
	sites := append(slices.Clone(s.Domains), s.Hosts...)
	name := "put"
	if len(sites) > 0 {
		name = sites[0]
	}
	alone := scope.Scope{Domains: s.Domains}
	if alone, _ = alone.Normal(); len(s.Domains) == 1 && bytes.Equal(alone.Text(), s.Text()) {
		return name
	}
	return fmt.Sprintf("%s-%x", name, sha256.Sum256(s.Text()))[:len(name)+1+8]
}

// sitesOf returns the registered domains of all URLs in files. rest is standard input, to be read
// from its beginning, also if it was one of the files.
func sitesOf(files []string, in io.Reader) (sites []string, rest io.Reader, err error) {
	seen := map[string]struct{}{}
	for _, name := range files {
		from := in
		if name == "-" {
			text, err := io.ReadAll(io.LimitReader(in, maxSameSite+1))
			if err != nil {
				return nil, nil, fmt.Errorf("read standard input: %w", err)
			}
			if len(text) > maxSameSite {
				return nil, nil, fmt.Errorf(
					"--same-site: standard input has more than %d bytes; use a file", maxSameSite)
			}
			in, from = bytes.NewReader(text), bytes.NewReader(text)
		} else {
			f, err := os.Open(name)
			if err != nil {
				return nil, nil, err
			}
			defer f.Close()
			from = f
		}
		if err := addSites(seen, strings.TrimPrefix(name, "-"), from); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if len(seen) == 0 {
		return nil, nil, errors.New("--same-site: there is no URL whose site it could be")
	}
	if len(seen) > scope.MaxList {
		return nil, nil, fmt.Errorf("--same-site: the URLs are of %d sites, and a scope has at most %d; put them "+
			"with several crawls", len(seen), scope.MaxList)
	}
	for site := range seen {
		sites = append(sites, site)
	}
	return sites, in, nil
}

// addSites adds the registered domains of the URLs in a file. It leaves out what is no URL.
func addSites(seen map[string]struct{}, name string, r io.Reader) error {
	plain, err := export.Unpack(r, name)
	if err != nil {
		return err
	}
	defer plain.Close()
	in := bufio.NewReaderSize(plain, maxPutLine)
	media, _ := mediaType(filepath.Ext(name), in)
	for {
		line, _, err := nextLine(in)
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte(byteOrderMark)))
		if strings.HasSuffix(media, "json") {
			var put struct{ URL string }
			if json.Unmarshal(line, &put) == nil {
				line = []byte(put.URL)
			}
		}
		if u, bad := weburl.Parse(line); bad == nil {
			seen[weburl.Domain(string(u.Host()))] = struct{}{}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// crawlQuery returns the query of requests that put URLs of a crawl.
func crawlQuery(crawl string) url.Values {
	if crawl == "" {
		return nil
	}
	return url.Values{"crawl": {crawl}}
}
