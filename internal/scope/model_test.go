package scope_test

import (
	"regexp"
	"strings"
	"testing"

	"urlserver/internal/scope"
	"urlserver/internal/weburl"
)

// model is Check in plain steps: each pattern by package regexp, each prefix by itself.
func model(s *scope.Scope, u weburl.URL, depth int) bool {
	url, host := string(u.Text()), strings.TrimSuffix(string(u.Host()), ".")
	near := len(s.Domains)+len(s.Hosts)+len(s.SURTs) == 0
	for _, d := range s.Domains {
		near = near || host == d || strings.HasSuffix(host, "."+d)
	}
	for _, h := range s.Hosts {
		near = near || host == h
	}
	any := func(list []string) (yes bool) {
		for _, p := range list {
			yes = yes || regexp.MustCompile(p).MatchString(url)
		}
		return yes
	}
	path, _, _ := strings.Cut(string(u.Target()), "?")
	ending := false
	for _, e := range s.DenyExtensions {
		ending = ending || strings.HasSuffix(strings.ToLower(path), "."+e)
	}
	return near && !any(s.Deny) && !ending && (len(s.Allow) == 0 || any(s.Allow)) &&
		(s.MaxDepth == nil || depth <= *s.MaxDepth)
}

// FuzzCheck compares Check with its model on any scope and URL.
func FuzzCheck(f *testing.F) {
	f.Add(`{"domains":["example.org"],"deny":["a|bc","x{2,3}y"]}`, "http://www.example.org/xxy", 1)
	f.Add(`{"allow":["(?i)Foo","\\.(?:jpg|jpeg|png)$"],"max_depth":2}`, "http://h.example/foo.jpeg?x", 2)
	f.Add(`{"hosts":["a.example"],"deny_extensions":["tar.gz","K"]}`, "http://a.example/x.tar.gz", 0)
	f.Add(`{"surts":["http://(org,example,)/a"]}`, "https://me:you@example.org:81/a", 0)
	f.Add(`{"deny":["(ab)+","(?:ab){0,2}c","[^a]b.c","^http","$"]}`, "http://ab/abab", 0)
	f.Fuzz(func(t *testing.T, text, url string, depth int) {
		s, err := scope.Parse([]byte(text))
		if err != nil {
			return
		}
		again, err := scope.Parse(s.Text())
		if err != nil || string(again.Text()) != string(s.Text()) {
			t.Fatalf("%s is read back as %s, %v", s.Text(), again.Text(), err)
		}
		rules, err := scope.Compile(s)
		if err != nil {
			t.Fatalf("%s: accepted, and not compiled: %v", s.Text(), err)
		}
		u, err := weburl.Parse([]byte(url))
		rules.Check([]byte(url), nil, depth, 0) // URL Frontier clients put any text
		if err != nil || len(s.SURTs) > 0 || !s.Until.IsZero() {
			return
		}
		if got, want := rules.Check(u.Text(), u.Host(), depth, 0), model(&s, u, depth); (got == scope.InScope) != want {
			t.Errorf("%s: %s at depth %d: %v; the model says %v", s.Text(), u.Text(), depth, got, want)
		}
	})
}
