package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// serveNames answers DNS queries with the addresses that address returns, with a TTL of 0.
func serveNames(t *testing.T, address func(name string) string) (addr string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(query)
		q := query.Question[0]
		ip := address(strings.ToLower(q.Name))
		if ip == "" {
			answer.Rcode = dns.RcodeNameError
		} else if q.Qtype == dns.TypeA {
			header := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}
			answer.Answer = []dns.RR{&dns.A{Hdr: header, A: net.ParseIP(ip)}}
		}
		_ = w.WriteMsg(answer) // a client that has gone needs no answer
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	return conn.LocalAddr().String()
}

// serveWeb serves HTTP at an address and returns the port.
func serveWeb(t *testing.T, at string, handler http.HandlerFunc) (port string) {
	t.Helper()
	web := httptest.NewUnstartedServer(handler)
	web.Listener.Close()
	var err error
	if web.Listener, err = net.Listen("tcp", at); err != nil {
		t.Fatal(err)
	}
	web.Start()
	t.Cleanup(web.Close)
	_, port, _ = net.SplitHostPort(web.Listener.Addr().String())
	return port
}

// TestRefusedNetworks allows allowedIP and does not allow refusedIP.
const allowedIP, refusedIP = "127.0.0.2", "127.0.0.1"

// serveRedirects serves robots.txt at the allowed address. Those of two hosts redirect to the
// refused one, by a name and by the address. It counts the redirects.
func serveRedirects(t *testing.T, to string) (port string, redirected *atomic.Int64) {
	t.Helper()
	redirected = &atomic.Int64{}
	port = serveWeb(t, allowedIP+":0", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "redirects.") {
			redirected.Add(1)
			http.Redirect(w, r, "http://inside.test:"+to+"/robots.txt", http.StatusFound)
		} else if strings.HasPrefix(r.Host, "literal.") {
			redirected.Add(1)
			http.Redirect(w, r, "http://"+refusedIP+":"+to+"/robots.txt", http.StatusFound)
		}
	})
	return port, redirected
}

// fetchNothing says that each document is done, until the connection ends. It returns the first
// line, which has come already, and those that come.
func fetchNothing(sp *fake, first []string) (sent chan []string) {
	sent = make(chan []string, 100)
	sent <- first
	sp.conn.SetReadDeadline(time.Time{})
	go func() {
		for lines := bufio.NewScanner(sp.in); lines.Scan(); {
			line := strings.Fields(lines.Text())
			sent <- line
			fmt.Fprintf(sp.conn, "%s DONE 200\n", line[0])
		}
		close(sent)
	}()
	return sent
}

// The daemon requests nothing in refused networks, and sends spiders to none: not for a URL, a name
// that resolves there, a redirect of robots.txt, or a name whose address changes.
func TestRefusedNetworks(t *testing.T) {
	var touched atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { touched.Add(1) }))
	defer trap.Close()
	_, trapPort, _ := net.SplitHostPort(trap.Listener.Addr().String())
	port, redirected := serveRedirects(t, trapPort)

	var changed atomic.Bool
	names := serveNames(t, func(name string) string {
		switch {
		case name == "inside.test.", name == "changes.test." && changed.Load():
			return refusedIP
		}
		return allowedIP
	})
	d := startDaemon(t, write(t, "urlserver.toml", fmt.Sprintf(`Req_Host_Per_Sec = 1000
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
resolver.servers = [%q]
resolver.allow_networks = ["%s/32"]
resolver.min_ttl = "0s"
resolver.family = "ipv4"
robots.error_ttl = "100ms"
`, names, allowedIP)))
	sp := dialSpider(t, d.spiders)
	put := func(urls ...string) {
		t.Helper()
		command(t, strings.Join(urls, "\n")+"\n", "put", "--at", d.at, "-").want(t, 0, `"invalid":0`, "")
	}
	put("http://changes.test:" + port + "/first")
	first := sp.next()
	changed.Store(true)
	sp.done(first[0])
	put("http://inside.test:"+trapPort+"/", "http://"+refusedIP+":"+trapPort+"/",
		"http://0x7f000001:"+trapPort+"/", "http://[::ffff:127.0.0.1]:"+trapPort+"/",
		"http://changes.test:"+trapPort+"/second", "http://redirects.test:"+port+"/",
		"http://literal.test:"+port+"/", "http://good.test:"+port+"/")
	sent := fetchNothing(sp, first)
	var now struct{ Outcomes map[string]int }
	// Two URLs are equal, so one counts. The cached address of the changing name does not matter.
	for deadline := time.Now().Add(patience); now.Outcomes["done"] < 2 ||
		now.Outcomes["dns"]+now.Outcomes["robots"] < 6; {
		got := command(t, "", "status", "--json", "--at", d.at)
		if err := json.Unmarshal([]byte(got.out), &now); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v; status %s", err, got.out)
		}
	}
	sp.conn.Close()
	if now.Outcomes["dns"] < 3 {
		t.Errorf("outcomes %v; want at least three that are refused for their address", now.Outcomes)
	}
	for line := range sent {
		if line[2] != allowedIP {
			t.Errorf("sent to %s: %v", line[2], line)
		}
	}
	if redirected.Load() < 2 {
		t.Error("the robots.txt that lead elsewhere were not asked for")
	}
	if n := touched.Load(); n > 0 {
		t.Errorf("%d requests came to a refused network", n)
	}
}
