package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

// status is the answer of /api/status.
type status struct {
	Uptime   float64                                  `json:"uptime_s"`
	Paused   bool                                     `json:"paused"`
	Slots    struct{ Total, Used, Full, Cooling int } `json:"slots"`
	Levels   levels                                   `json:"levels"`
	Held     int                                      `json:"held"`
	Leftover int                                      `json:"leftover"`
	InFlight int                                      `json:"in_flight"`
	Spiders  []struct {
		Addr       string
		InFlight   int `json:"in_flight"`
		Sent, Done uint64
		Note       string
	} `json:"spiders"`
	Notes    []string
	Sent     uint64            `json:"sent"`
	Retried  uint64            `json:"retried"`
	Stale    uint64            `json:"stale"`
	BadLines uint64            `json:"bad_lines"`
	Outcomes map[string]uint64 `json:"outcomes"`
	Statuses map[string]uint64 `json:"statuses"`
	Reject   int               `json:"reject"`
	Index    struct {
		Requests, Candidates, Duplicates uint64
		LastError                        string  `json:"last_error"`
		Scheduled, Completed             *uint64 // nil: the index is not embedded
		InTransit                        uint64  `json:"in_transit"`
	} `json:"index"`
	Reservation *leases  `json:"reservation"` // nil: no reservation
	Kafka       *brokers `json:"kafka"`       // nil: crawl control does not use Kafka
}

// levels counts by level what holds hosts back.
type levels struct {
	Site struct {
		Waiting, Backoffs uint64
		RetryAfter        uint64 `json:"retry_after"`
	}
	Address struct {
		Waiting, Backoffs uint64
		BackingOff        uint64 `json:"backing_off"`
	}
	Network struct{ Waiting uint64 }
}

func (l *levels) waiting() string {
	return fmt.Sprintf("%d hosts for their site, %d for their address, %d for their shared network",
		l.Site.Waiting, l.Address.Waiting, l.Network.Waiting)
}

func (l *levels) backoffs() string {
	return fmt.Sprintf("%d of sites, %d with Retry-After; %d of addresses, %d back off now",
		l.Site.Backoffs, l.Site.RetryAfter, l.Address.Backoffs, l.Address.BackingOff)
}

// leases is the daemon's part of the reservation.
type leases struct {
	Away                            bool
	Held                            int
	Granted, Denied, Lost, Failures uint64
}

func (l *leases) state() string {
	if l.Away {
		return "does not answer"
	}
	return "answers"
}

// brokers is the state of crawl control over Kafka.
type brokers struct {
	Connected                   bool
	Lag                         int64
	Requests, Replies, Failures uint64
	GivenUp                     uint64 `json:"given_up"`
}

func (b *brokers) state() string {
	if b.Connected {
		return "connected"
	}
	return "not connected"
}

func statusCommand() *cobra.Command {
	var c client
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how a running daemon is doing",
		Long: "Shows the state of a running daemon. Counts begin at its start.\n" +
			"  slots      all slots, those in use, those that are full; groups whose gap has not passed yet\n" +
			"  waiting    hosts with documents to send, by the level that they wait for: their site, their\n" +
			"             turn on their address, or their shared network; explain shows one host\n" +
			"  backoffs   how often the gap of a site grew after 429 or 503, and that of an address\n" +
			"             after 429 or 503 of several of its sites\n" +
			"  held       documents that have not ended; those in no slot, those at spiders\n" +
			"  sent       URLs sent, and those of them that were sent again; statuses that came too late,\n" +
			"             lines of spiders that were ignored\n" +
			"  outcomes   how held documents ended; those that a stop ends in the doc index are completed there\n" +
			"  statuses   the HTTP statuses of documents that are done, by their first digit; none: no answer\n" +
			"  doc index  requests to it, documents that it offered, those that were held or had ended lately,\n" +
			"             hosts that it is asked to leave out; all documents of an embedded index, by state\n" +
			"  spiders    connected spiders, and for each the documents in flight, sent, and done",
		Example: "  urlserver status\n  urlserver status --json",
		Args:    clihelp.Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.open(); err != nil {
				return err
			}
			var s status
			return c.look(cmd, "/api/status", nil, &s, s.print)
		},
	}
	c.lookFlags(cmd)
	return cmd
}

func (s *status) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	up := time.Duration(s.Uptime * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(w, "up\t%v%s\n", up, map[bool]string{true: ", paused"}[s.Paused])
	fmt.Fprintf(w, "slots\t%d, %d used, %d full; %d groups cooling\n", s.Slots.Total, s.Slots.Used,
		s.Slots.Full, s.Slots.Cooling)
	fmt.Fprintf(w, "waiting\t%s\n", s.Levels.waiting())
	fmt.Fprintf(w, "backoffs\t%s\n", s.Levels.backoffs())
	fmt.Fprintf(w, "held\t%d, %d in leftover, %d in flight\n", s.Held, s.Leftover, s.InFlight)
	fmt.Fprintf(w, "sent\t%d, %d again; %d stale statuses, %d bad lines\n", s.Sent, s.Retried, s.Stale,
		s.BadLines)
	fmt.Fprintf(w, "outcomes\t%s\n", s.outcomes())
	if list := s.statuses(); list != "" {
		fmt.Fprintf(w, "statuses\t%s\n", list)
	}
	fmt.Fprintf(w, "doc index\t%d requests, %d candidates, %d duplicates, %d hosts rejected\n",
		s.Index.Requests, s.Index.Candidates, s.Index.Duplicates, s.Reject)
	if totals := s.totals(); totals != "" {
		fmt.Fprintf(w, "\t%s\n", totals)
	}
	if s.Index.LastError != "" {
		fmt.Fprintf(w, "\t%s\n", s.Index.LastError)
	}
	if l := s.Reservation; l != nil {
		fmt.Fprintf(w, "reservation\t%s; %d groups held, %d got, %d refused, %d lost, %d asked for without an answer\n",
			l.state(), l.Held, l.Granted, l.Denied, l.Lost, l.Failures)
	}
	if k := s.Kafka; k != nil {
		fmt.Fprintf(w, "Kafka\t%s; %d requests waiting, %d done, %d replies sent, %d refused by an "+
			"application's topic, %d failures\n",
			k.state(), k.Lag, k.Requests, k.Replies, k.GivenUp, k.Failures)
	}
	fmt.Fprintf(w, "spiders\t%d\n", len(s.Spiders))
	for _, spider := range s.Spiders {
		fmt.Fprintf(w, "\t%s: %d in flight, %d sent, %d done", spider.Addr, spider.InFlight, spider.Sent,
			spider.Done)
		if spider.Note != "" {
			fmt.Fprintf(w, "; %s", spider.Note)
		}
		fmt.Fprintln(w)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(w, "\t%s\n", note)
	}
	return w.Flush()
}

// shared returns short texts about the reservation and Kafka; none: there are neither.
func (s *status) shared() (parts []string) {
	if l := s.Reservation; l != nil {
		parts = append(parts, fmt.Sprintf("reservation %s, held %d, refused %d", l.state(), l.Held, l.Denied))
	}
	if k := s.Kafka; k != nil {
		parts = append(parts, fmt.Sprintf("Kafka %s, waiting %d", k.state(), k.Lag))
	}
	return parts
}

// statuses returns the documents that are done by class; "": none, or the daemon is older than
// these counts.
func (s *status) statuses() string { return countsOf(s.Statuses, hostClasses[:5]) }

// totals returns the documents of an embedded index; "": it is elsewhere.
func (s *status) totals() string {
	if s.Index.Scheduled == nil || s.Index.Completed == nil {
		return ""
	}
	return fmt.Sprintf("%d scheduled, %d in transit, %d completed", *s.Index.Scheduled, s.Index.InTransit,
		*s.Index.Completed)
}

func (s *status) outcomes() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(s.Outcomes)) {
		if n := s.Outcomes[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
