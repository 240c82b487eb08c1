package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// sharing is what a daemon answers that shares hosts and has crawl control over Kafka.
const sharing = `{"uptime_s":60,"paused":false,"slots":{"total":4,"used":2,"full":0,"cooling":0},"held":9,"leftover":0,"in_flight":0,"spiders":[],` +
	`"sent":1,"retried":0,"stale":0,"bad_lines":0,"outcomes":{},"reject":0,"index":{"requests":1,"candidates":9,"duplicates":0,"last_error":""},` +
	`"reservation":{"away":%t,"held":21,"granted":22,"denied":23,"lost":24,"failures":25},` +
	`"kafka":{"connected":%t,"lag":31,"requests":32,"replies":33,"given_up":34,"failures":35}}`

// statusServer answers as a daemon with that status would.
func statusServer(t *testing.T, status string) (at string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, status) })
	mux.HandleFunc("GET /api/live", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "event: status\ndata: %s\n\n", status)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestStatusShowsWhatIsShared(t *testing.T) {
	for _, c := range []struct {
		name              string
		away, connected   bool
		reservation, word string
	}{
		{name: "well", connected: true, reservation: "answers", word: "connected"},
		{name: "away", away: true, reservation: "does not answer", word: "not connected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(sharing, c.away, c.connected)
			at := statusServer(t, text)
			shown := command(t, "", "status", "--at", at)
			for _, want := range []string{
				"\nreservation  " + c.reservation +
					"; 21 groups held, 22 got, 23 refused, 24 lost, 25 asked for without an answer\n",
				"\nKafka        " + c.word + "; 31 requests waiting, 32 done, 33 replies sent, 34 " +
					"refused by an application's topic, 35 failures\n",
			} {
				shown.want(t, 0, want, "")
			}
			if got := command(t, "", "status", "--at", at, "--json"); got.out != text {
				t.Errorf("status --json: %s; want the answer as it is: %s", got.out, text)
			}
			command(t, "", "top", "--at", at, "--lines", "1").want(t, 0,
				"  reservation "+c.reservation+", held 21, refused 23  Kafka "+c.word+", waiting 31\n", "")
		})
	}
}

// What came back of documents, and what the index has, is shown where the daemon tells it.
func TestStatusShowsWhatCameBack(t *testing.T) {
	const old = `{"spiders":[],"outcomes":{"done":5},"index":{"requests":1}}`
	shown := command(t, "", "status", "--at", statusServer(t, old))
	shown.want(t, 0, "outcomes   5 done\n", "")
	if strings.Contains(shown.out, "\nstatuses") || strings.Contains(shown.out, "scheduled") {
		t.Errorf("of an older daemon: %s", shown.out)
	}
	const now = `{"spiders":[],"outcomes":{"done":5,"dns":1},"statuses":{"2xx":3,"3xx":0,"4xx":1,"5xx":0,"none":1,"dns":1},` +
		`"index":{"requests":1,"embedded":true,"scheduled":7,"in_transit":8,"completed":6}}`
	shown = command(t, "", "status", "--at", statusServer(t, now))
	shown.want(t, 0, "\nstatuses   3 2xx, 1 4xx, 1 none\n", "")
	shown.want(t, 0, "           7 scheduled, 8 in transit, 6 completed\n", "")
}

func TestExplainShowsWhatCameBack(t *testing.T) {
	for _, c := range []struct{ fetched, want string }{
		{fetched: `{"2xx":0,"last_status":null,"last_error":"","last_error_at":null,"mean_fetch_s":null}`,
			want: "came back   nothing yet\n"},
		{fetched: `{"2xx":3,"4xx":1,"dns":0,"last_status":404,"last_error":"status 404","last_error_at":"2026-01-01T00:00:00Z","mean_fetch_s":0.25}`,
			want: "came back   3 2xx, 1 4xx; a fetch took 0.25 s; last failure: status 404, at " +
				"2026-01-01T00:00:00Z\n"},
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /api/hosts/a.test", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"host":"a.test","why":"because","blocked_by":"rule","fetched":%s}`, c.fetched)
		})
		s := httptest.NewServer(mux)
		t.Cleanup(s.Close)
		shown := command(t, "", "explain", "a.test", "--at", s.URL)
		shown.want(t, 0, c.want, "")
		shown.want(t, 0, "blocked     until the settings change\n", "")
	}
}

func TestTopScreenShowsWhatIsShared(t *testing.T) {
	n, err := parseNews("status", fmt.Appendf(nil, sharing, true, true))
	if err != nil {
		t.Fatal(err)
	}
	v := view{status: n.status}
	screen := v.draw(80, 24, time.Now())
	for _, want := range []string{"\nreservation does not answer, held 21, refused 23" + clearLine,
		"\nKafka connected, waiting 31" + clearLine} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen is %q; want %q in it", screen, want)
		}
	}
	v.status.Reservation, v.status.Kafka = nil, nil
	if screen := v.draw(80, 24, time.Now()); strings.Contains(screen, "reservation") ||
		strings.Contains(screen, "Kafka") {
		t.Errorf("the screen is %q; want nothing of what is not shared", screen)
	}
}

// A real daemon whose reservation and brokers are away says so.
func TestStatusOfWhatIsAway(t *testing.T) {
	d := startDaemon(t, settings(t, `reservation.kind = "grpc"
reservation.addrs = ["127.0.0.1:9"]
monitor.brokers = ["127.0.0.1:9"]
docindex.seeds = [`+fmt.Sprintf("%q", write(t, "seeds.txt", "http://127.0.0.1/1\n"))+"]\n"))
	d.shows("/api/status", `"away":true`)
	got := command(t, "", "status", "--at", d.at)
	got.want(t, 0, "\nreservation  does not answer; 0 groups held", "")
	got.want(t, 0, "\nKafka        not connected; 0 requests waiting", "")
}
