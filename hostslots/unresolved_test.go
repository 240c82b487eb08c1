package hostslots

import (
	"fmt"
	"testing"
	"time"
)

// TestFailedHostWithManyQueues: of a host that was given up while none of its many origins could send
// a document, NextFailed returns all documents in turn, also those that come meanwhile, and looks at
// all origins once in a round.
func TestFailedHostWithManyQueues(t *testing.T) {
	const ports = 1000
	s := New(usualConfig(1))
	docs := 0
	offer := func(port int) {
		key := fmt.Appendf(nil, "http://a.test:%d", port)
		o := s.EnsureOrigin(key, []byte("a.test"))
		s.Origin(o).SetRobotsPending(0, true)
		docs++
		s.Offer(0, Candidate{Origin: o, ID: fmt.Append(nil, docs), URL: fmt.Appendf(key, "/%d", docs)})
	}
	for port := range ports {
		offer(port + 1)
		offer(port + 1)
	}
	host := s.FindHost([]byte("a.test"))
	s.Host(host).Fail()
	if s.hosts.At(host).first != 0 {
		t.Fatal("an origin offers a document")
	}
	ended := 0
	end := func() bool {
		doc, of := s.NextFailed()
		if doc == 0 {
			return false
		}
		if of != host {
			t.Fatalf("a document of host %d; want %d", of, host)
		}
		s.End(0, doc)
		ended++
		return true
	}
	for end() {
		if left, want := len(s.unresolved.queues), ports-(ended-1)/2; ended <= 2*ports && left != want {
			t.Fatalf("%d origins are left to look at after %d documents; want %d", left, ended, want)
		}
		if ended == ports {
			offer(1) // it has none any more
			offer(ports + 1)
		}
	}
	if ended != docs || s.hosts.At(host).docs != 0 {
		t.Errorf("%d documents came; want %d", ended, docs)
	}
}

// TestForgottenHostFailsNoMore: a host that is forgotten while its name fails leaves the failing hosts.
// Another one that has its number is not among them, and can be.
func TestForgottenHostFailsNoMore(t *testing.T) {
	cfg := usualConfig(1)
	cfg.Remember = 0
	s := New(cfg)
	failing := func() (names []string) {
		s.Rejects(func(name []byte) { names = append(names, string(name)) })
		return names
	}
	host := func(name string) Host {
		return s.Host(s.HostOf(s.EnsureOrigin([]byte("http://"+name), []byte(name))))
	}
	host("a.test").SetFailing(true)
	for now := time.Second; s.FindHost([]byte("a.test")) != 0; now += time.Minute {
		if now > time.Hour {
			t.Fatal("the host is not forgotten")
		}
		s.Tick(now)
	}
	b, c := host("b.test"), host("c.test")
	if names := failing(); len(names) != 0 {
		t.Errorf("failing: %q; want none", names)
	}
	b.SetFailing(true)
	c.SetFailing(true)
	b.SetFailing(false)
	if names := failing(); len(names) != 1 || names[0] != "c.test" {
		t.Errorf("failing: %q; want c.test", names)
	}
}
