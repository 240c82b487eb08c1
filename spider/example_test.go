package spider_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"urlserver/spider"
)

// A program's HTTP client whose requests take turns with those of all others that the daemon serves.
func ExampleTransport() {
	transport := &spider.Transport{Daemon: "127.0.0.1:4101", API: "http://127.0.0.1:8080"}
	defer transport.Close()
	client := &http.Client{Transport: transport, Timeout: time.Hour} // of waiting and fetching together
	resp, err := client.Get("https://example.org/")
	if err != nil {
		log.Fatal(err) // also a *spider.EndedError: robots.txt forbids the page, for example
	}
	defer resp.Body.Close() // only then may the host's next request begin
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.Status, len(page))
}
