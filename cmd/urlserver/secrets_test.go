package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "urlserver/api/urlfrontier"
)

// A daemon with a token at each listener, which receives right, wrong and misplaced ones, shows
// none of them: not in its log at the finest level, nor in anything that HTTP or a command answers.
func TestNoSecretsShow(t *testing.T) {
	const spiders, operator, clients = "s3cret-of-spiders", "s3cret-of-the-operator", "s3cret-of-clients"
	file := settings(t, fmt.Sprintf("spider.token = %q\nhttp.token = %q\nfrontier.token = "+
		"%q\nfrontier.listen = \"127.0.0.1:0\"\nlog.level = \"trace\"\n",
		spiders, operator, clients)+`
reservation.kind = "grpc"
reservation.addrs = ["127.0.0.1:9"]
reservation.token = "s3cret-of-the-reservation"
monitor.brokers = ["127.0.0.1:9"]
monitor.security_protocol = "SASL_PLAINTEXT"
monitor.sasl_username = "us"
monitor.sasl_password = "s3cret-of-brokers"
`)
	var seen strings.Builder
	d := startDaemon(t, file)
	get := func(method, path, token string) {
		t.Helper()
		resp, text := d.ask(method, path, token)
		fmt.Fprintf(&seen, "%s %s: %v\n%s\n", method, path, resp.Header, text)
	}

	sp := dialSpider(t, d.spiders)
	// once right, and thrice where it is a bad line
	fmt.Fprintf(sp.conn, "AUTH %s\nAUTH %[1]s\nauth %[1]s\nAUTH\t%[1]s x\n", spiders)
	d.log.until("bad line from spider ignored")
	d.log.until("bad line from spider ignored")
	d.log.until("bad line from spider ignored")
	wrong := dialSpider(t, d.spiders)
	fmt.Fprintf(wrong.conn, "AUTH %s-and-more\n", spiders)
	d.log.until("spider refused")

	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/api/status", "/api/slots",
		"/api/hosts/127.0.0.1", "/api/settings", "/api/warnings", "/nothing"} {
		get("GET", path, operator)
		get("GET", path, operator+"-and-more")
	}
	seen.WriteString(liveEvents(t, d, operator))
	seen.WriteString(liveEvents(t, d, operator+"-and-more"))
	rewrite(t, file, fmt.Sprintf(base, "")+fmt.Sprintf("http.token = %q\nspider.token = %q\nx = 1\n",
		operator+"2", spiders+" 2"))
	get("POST", "/api/reload", operator)
	rewrite(t, file,
		fmt.Sprintf(base, "")+fmt.Sprintf("http.token = %q\nspider.token = %q\nlog.level = \"trace\"\n",
			operator+"2", spiders+"2"))
	get("POST", "/api/reload", operator)
	for _, token := range []string{operator, operator + "-and-more"} {
		for _, args := range [][]string{{"status"}, {"status", "--json"}, {"explain", "127.0.0.1"}} {
			got := command(t, "", append(args, "--at", d.at, "--token", token)...)
			seen.WriteString(got.out + got.errs)
		}
	}
	got := command(t, "", "check", file)
	seen.WriteString(got.out + got.errs)

	seen.WriteString(queuesFor(t, d, clients, clients+"-and-more"))
	code, _ := d.stop()
	log := d.log.all()
	if code != 0 || !strings.Contains(seen.String(), "settings refused") ||
		!strings.Contains(seen.String(), "urlserver_sent_total") {
		t.Errorf("exit status %d; answers %s", code, seen.String())
	}
	for what, text := range map[string]string{"the log": log, "answers": seen.String()} {
		if at := strings.Index(text, "s3cret"); at >= 0 {
			t.Errorf("%s show a token: %.200q", what, text[max(0, at-100):])
		}
	}
}

// queuesFor lists the queues of the frontier with the right token and a wrong one, and returns the answers.
func queuesFor(t *testing.T, d *daemon, right, wrong string) string {
	t.Helper()
	var seen strings.Builder
	conn, err := grpc.NewClient(d.frontier, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, token := range []string{right, wrong} {
		ctx := metadata.AppendToOutgoingContext(context.WithoutCancel(t.Context()), "authorization",
			"Bearer "+token)
		answer, err := pb.NewURLFrontierClient(conn).ListQueues(ctx, &pb.Pagination{})
		if fails := token != right; (err != nil) != fails {
			t.Errorf("ListQueues with %q: %v", token, err)
		}
		fmt.Fprintln(&seen, answer, err)
	}
	return seen.String()
}

// A doc index elsewhere that fails, and repeats what it was sent, does not bring the token into log
// or status.
func TestNoSecretsOfTheDocIndexShow(t *testing.T) {
	const secret = "s3cret-of-the-index"
	asked := make(chan bool, 100)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		select {
		case asked <- true:
		default:
		}
	}))
	defer far.Close()
	d := startDaemon(t,
		settings(t, fmt.Sprintf(
			"docindex.kind = \"http\"\ndocindex.url = %q\ndocindex.token = %q\nlog.level = \"trace\"",
			far.URL, secret)))
	dialSpider(t, d.spiders)
	<-asked
	<-asked // so that the first answer has been dealt with
	got := command(t, "", "status", "--json", "--at", d.at)
	got.want(t, 0, "401", "")
	d.stop()
	if text := got.out + d.log.all(); strings.Contains(text, secret) {
		t.Errorf("the token shows: %s", text)
	}
}
