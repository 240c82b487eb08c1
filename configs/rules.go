package configs

import (
	"cmp"
	"fmt"
	"slices"
)

// rule is about settings that must go together.
type rule struct {
	keys  []string              // those concerned; the first that a file sets is the one to blame
	fault func(c Config) string // "": nothing is wrong
}

func rules() []rule { return slices.Concat(indexRules(), pairRules(), guardRules()) }

// indexRules returns the rules about slots, and about what needs which kind of index.
func indexRules() []rule {
	return []rule{
		{keys: []string{"Req_Host_Concurrent", "Queue_Len"}, fault: activeRangeFits},
		{keys: []string{rulesKey, "Queue_Len"}, fault: ruledRangesFit},
		{keys: []string{"politeness.site_concurrent", "Queue_Len"}, fault: siteRangeFits},
		{keys: []string{"docindex.kind", "docindex.url"}, fault: indexHasURL},
		{keys: []string{"docindex.kind", "docindex.path"}, fault: indexHasPath},
		{
			keys: []string{"docindex.refetch_after.ok", "docindex.refetch_after.gone",
				"docindex.refetch_after.error", "docindex.kind"},
			fault: refetchIsEmbedded,
		},
		{keys: []string{"docindex.seeds", "docindex.kind"}, fault: func(c Config) string {
			return embedded(c, len(c.DocIndex.Seeds) > 0,
				"docindex.seeds go into an embedded index; put them there")
		}},
		{keys: []string{crawlsKey, "docindex.kind"}, fault: crawlsAreEmbedded},
		{keys: []string{canonicalKey, "docindex.kind"}, fault: canonicalIsEmbedded},
		{keys: []string{"frontier.listen", "docindex.kind"}, fault: func(c Config) string {
			return embedded(c, c.Frontier.Listen != "",
				"frontier.listen: the URL Frontier service needs an embedded index; run it there")
		}},
		{keys: []string{"monitor.brokers", "docindex.kind"}, fault: func(c Config) string {
			return embedded(c, len(c.Monitor.Brokers) > 0,
				"monitor.brokers: crawl control needs an embedded index; run it there")
		}},
	}
}

// pairRules returns the rules about settings of one thing, of which one needs the other.
func pairRules() []rule {
	return []rule{
		{keys: []string{"docindex.retry", "docindex.max_retry"}, fault: func(c Config) string {
			return ordered("docindex.retry", c.DocIndex.Retry, "docindex.max_retry",
				c.DocIndex.MaxRetry, short)
		}},
		{keys: []string{"resolver.min_ttl", "resolver.max_ttl"}, fault: func(c Config) string {
			return ordered("resolver.min_ttl", c.Resolver.MinTTL, "resolver.max_ttl",
				c.Resolver.MaxTTL, short)
		}},
		{keys: []string{"spider.tls_cert", "spider.tls_key"}, fault: func(c Config) string {
			return pairedTLS("spider", c.Spider.TLSCert, c.Spider.TLSKey)
		}},
		{keys: []string{"spider.tls_ca", "spider.tls_cert"}, fault: clientCertsNeedTLS},
		{keys: []string{"frontier.tls_cert", "frontier.tls_key"}, fault: func(c Config) string {
			return pairedTLS("frontier", c.Frontier.TLSCert, c.Frontier.TLSKey)
		}},
		{keys: []string{"reservation.tls_cert", "reservation.tls_key"}, fault: func(c Config) string {
			return pairedTLS("reservation", c.Reservation.TLSCert, c.Reservation.TLSKey)
		}},
		{keys: []string{"reservation.kind", "reservation.addrs"}, fault: reservationHasAddrs},
		{keys: []string{"docindex.tls_cert", "docindex.tls_key"}, fault: func(c Config) string {
			return pairedTLS("docindex", c.DocIndex.TLSCert, c.DocIndex.TLSKey)
		}},
		{keys: []string{"docindex.kind", "docindex.addrs"}, fault: indexHasAddrs},
		{keys: []string{"monitor.brokers", "monitor.inbound", "monitor.prefix"}, fault: requestsComeFrom},
		{keys: []string{"monitor.security_protocol", "monitor.sasl_username", "monitor.sasl_password"},
			fault: saslHasUser},
		{keys: []string{"monitor.security_protocol", "monitor.tls_ca", "monitor.tls_cert",
			"monitor.tls_key"}, fault: kafkaFilesNeedTLS},
		{keys: []string{"monitor.tls_cert", "monitor.tls_key"}, fault: func(c Config) string {
			return pairedTLS("monitor", c.Monitor.TLSCert, c.Monitor.TLSKey)
		}},
	}
}

// guardRules returns the rules about listeners that anybody could reach.
func guardRules() []rule {
	return []rule{
		{keys: []string{"spider.listen", "spider.token", "spider.tls_cert", "allow_insecure"},
			fault: func(c Config) string {
				return guarded(c, "spider.listen", c.Spider.Listen, c.Spider.Token != "" ||
					c.Spider.TLSCert != "", "spider.token, or spider.tls_cert with spider.tls_key")
			}},
		{keys: []string{"http.listen", "http.token", "allow_insecure"}, fault: func(c Config) string {
			return guarded(c, "http.listen", c.HTTP.Listen, c.HTTP.Token != "", "http.token")
		}},
		{keys: []string{"frontier.listen", "frontier.token", "frontier.allow_from", "frontier.tls_cert",
			"allow_insecure"}, fault: func(c Config) string {
			f := c.Frontier
			return guarded(c, "frontier.listen", f.Listen,
				f.Token != "" || f.TLSCert != "" || len(f.AllowFrom) > 0,
				"frontier.token, frontier.allow_from, or frontier.tls_cert with frontier.tls_key")
		}},
	}
}

func activeRangeFits(c Config) string {
	if c.ReqHostConcurrent <= c.QueueLen {
		return ""
	}
	return fmt.Sprintf("Req_Host_Concurrent (%d) is more than Queue_Len (%d): the active "+
		"range is part of the queue",
		c.ReqHostConcurrent, c.QueueLen)
}

func ruledRangesFit(c Config) string {
	for i, r := range c.Rules {
		name, open := "concurrent", r.Concurrent
		if r.SiteConcurrent > open || r.Shared { // a shared network is in many slots
			name, open = "site_concurrent", r.SiteConcurrent
		}
		if open > c.QueueLen {
			return fmt.Sprintf("rule %d: %s (%d) is more than Queue_Len (%d): the active "+
				"range is part of the queue",
				i+1, name, open, c.QueueLen)
		}
	}
	return ""
}

func siteRangeFits(c Config) string {
	if c.Politeness.SiteConcurrent <= c.QueueLen {
		return ""
	}
	return fmt.Sprintf(
		"politeness.site_concurrent (%d) is more than Queue_Len (%d): the active range is part of the queue",
		c.Politeness.SiteConcurrent, c.QueueLen)
}

func indexHasURL(c Config) string {
	if c.DocIndex.Kind == KindHTTP && c.DocIndex.URL == "" {
		return `docindex.kind = "http" needs docindex.url, the base URL of the index`
	}
	return ""
}

func indexHasPath(c Config) string {
	if c.DocIndex.Kind == KindDisk && c.DocIndex.Path == "" {
		return `docindex.kind = "disk" needs docindex.path, the folder to keep it in`
	}
	return ""
}

func indexHasAddrs(c Config) string {
	if c.DocIndex.Kind == KindRedis && len(c.DocIndex.Addrs) == 0 {
		return `docindex.kind = "redis" needs docindex.addrs, where it is`
	}
	return ""
}

func refetchIsEmbedded(c Config) string {
	if c.DocIndex.Kind == KindHTTP && c.DocIndex.RefetchAfter != (RefetchAfter{}) {
		return `docindex.refetch_after is of an embedded index; with docindex.kind = "http" that index decides when to offer a document again`
	}
	return ""
}

// embedded returns a fault if something is wanted that only an embedded index has.
func embedded(c Config, wanted bool, fault string) string {
	if wanted && c.DocIndex.Kind == KindHTTP {
		return `docindex.kind = "http" is the index of somebody else, and ` + fault
	}
	return ""
}

func reservationHasAddrs(c Config) string {
	if c.Reservation.Kind != ReservationNone && len(c.Reservation.Addrs) == 0 {
		return fmt.Sprintf("reservation.kind = %q needs reservation.addrs, where it is", c.Reservation.Kind)
	}
	return ""
}

func clientCertsNeedTLS(c Config) string {
	if c.Spider.TLSCA != "" && c.Spider.TLSCert == "" {
		return "spider.tls_ca asks for client certificates, which needs spider.tls_cert and spider.tls_key"
	}
	return ""
}

func ordered[T cmp.Ordered](lowKey string, low T, highKey string, high T, text func(T) string) string {
	if low <= high {
		return ""
	}
	return fmt.Sprintf("%s (%s) is more than %s (%s)", lowKey, text(low), highKey, text(high))
}

func pairedTLS(table, cert, key string) string {
	switch {
	case cert != "" && key == "":
		return fmt.Sprintf("%s.tls_cert needs %[1]s.tls_key", table)
	case cert == "" && key != "":
		return fmt.Sprintf("%s.tls_key needs %[1]s.tls_cert", table)
	}
	return ""
}

// guarded returns what is wrong if other machines reach a listener that has neither token nor TLS.
func guarded(c Config, key, listen string, is bool, by string) string {
	if listen == "" || is || c.AllowInsecure || isLoopback(listen) {
		return ""
	}
	return fmt.Sprintf(
		"%s (%s) is open to others without token or TLS: set %s, listen on 127.0.0.1, "+
			"or say allow_insecure = true",
		key, shown(listen), by)
}

// Validate checks a configuration that was put together in the program, by the
// same table and rules as a file. The error is an *Error without lines.
func (c Config) Validate() error {
	r := newReader("")
	r.config = c
	for name := range r.settings {
		r.set[name] = 0
	}
	r.checkValues()
	r.checkRules()
	return errorOf(r.mistakes)
}
