package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

const echoed = "s3cret-for-an-echo"

// If a peer refuses a daemon and echoes what it received, the secret does not appear in the log or
// in answers.
func TestNoSecretsOfPeersShow(t *testing.T) {
	seeds := func(t *testing.T) string {
		return fmt.Sprintf("docindex.seeds = [%q]\n", write(t, "seeds.txt", "http://127.0.0.1/1\n"))
	}
	reserving := func(kind, addr string) string {
		return fmt.Sprintf("reservation.kind = %q\nreservation.addrs = [%q]\nreservation.token = %q\n",
			kind, addr, echoed)
	}
	const groupUnknown = "the reservation, which knows its group, does not answer"
	for _, c := range []struct {
		name        string
		path, shows string // the error is shown there, with this text
		settings    func(t *testing.T, asked chan<- bool) string
	}{
		{name: "reservation in Redis", path: "/api/hosts/127.0.0.1", shows: groupUnknown,
			settings: func(t *testing.T, asked chan<- bool) string {
				return seeds(t) + reserving("redis", echoRedis(t, asked))
			}},
		{name: "reservation over gRPC", path: "/api/hosts/127.0.0.1", shows: groupUnknown,
			settings: func(t *testing.T, asked chan<- bool) string {
				return seeds(t) + reserving("grpc", echoGRPC(t, asked))
			}},
		{name: "doc index in Redis", path: "/api/status", shows: `"last_error":"the doc index in Redis`,
			settings: func(t *testing.T, asked chan<- bool) string {
				return fmt.Sprintf(
					"docindex.kind = \"redis\"\ndocindex.addrs = [%q]\ndocindex.token = %q\n",
					echoRedis(t, asked), echoed)
			}},
		{name: "Kafka", path: "/api/warnings", shows: `SASL`,
			settings: func(t *testing.T, asked chan<- bool) string {
				return fmt.Sprintf("monitor.brokers = [%q]\nmonitor.security_protocol = "+
					"\"SASL_PLAINTEXT\"\nmonitor.sasl_username = \"us\"\nmonitor.sasl_password = %q\n",
					echoKafka(t, asked), echoed)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := make(chan bool, 100)
			d := startDaemon(t, settings(t, c.settings(t, asked)+"log.level = \"trace\"\n"))
			dialSpider(t, d.spiders)
			var seen strings.Builder
			<-asked
			d.shows(c.path, c.shows)
			got := command(t, "", "explain", "127.0.0.1", "--at", d.at)
			seen.WriteString(got.out + got.errs)
			for _, path := range []string{"/api/status", "/api/settings", "/api/warnings", "/metrics", "/readyz"} {
				_, text := d.ask("GET", path, "")
				seen.WriteString(text)
			}
			seen.WriteString(liveEvents(t, d, ""))
			d.stop()
			for what, text := range map[string]string{"the log": d.log.all(), "answers": seen.String()} {
				if at := strings.Index(text, echoed); at >= 0 {
					t.Errorf("%s show the secret: %.300q", what, text[max(0, at-200):])
				}
			}
		})
	}
}

// hears sends to asked, unless it is full.
func hears(asked chan<- bool) {
	select {
	case asked <- true:
	default:
	}
}

// echoRedis answers each line with an error that echoes it.
func echoRedis(t *testing.T, asked chan<- bool) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	working.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			working.Go(func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if strings.Contains(lines.Text(), echoed) {
						hears(asked)
						fmt.Fprintf(conn, "-WRONGPASS who is %s?\r\n", lines.Text())
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		working.Wait()
	})
	return l.Addr().String()
}

// echoGRPC fails each call with an error that echoes its header.
func echoGRPC(t *testing.T, asked chan<- bool) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		hears(asked)
		header, _ := metadata.FromIncomingContext(stream.Context())
		return grpcstatus.Errorf(codes.Unauthenticated, "who is %v?", header.Get("authorization"))
	}))
	var working sync.WaitGroup
	working.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		working.Wait()
	})
	return l.Addr().String()
}

// echoKafka is a broker that refuses each login with an error that echoes the password.
func echoKafka(t *testing.T, asked chan<- bool) (addr string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "them", "theirs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		hears(asked)
		cluster.KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		answer.ErrorMessage = kmsg.StringPtr("who is " +
			strings.ToValidUTF8(string(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes), "?") + "?")
		return answer, nil, true
	})
	return cluster.ListenAddrs()[0]
}

// liveEvents returns the events that viewers receive up to the second status, including warnings.
func liveEvents(t *testing.T, d *daemon, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.at+"/api/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seen strings.Builder
	for lines := bufio.NewScanner(resp.Body); strings.Count(seen.String(), "event: status") < 2 &&
		lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
	}
	return seen.String()
}
