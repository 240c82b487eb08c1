package configs

import (
	"net/netip"
	"slices"
	"time"

	"urlserver/internal/canonical"
)

// setting is one key of the settings file.
type setting struct {
	name    string // "spider.listen", as documented
	live    bool   // a running daemon can take it over
	allowed string
	secret  bool
	read    func(c *Config, v any) error  // sets the field unless it errs
	fault   func(c *Config) string        // "": nothing is wrong with the field
	text    func(c *Config) string        // the field as TOML, secrets too
	copy    func(to *Config, from Config) // the field alone
}

const (
	live    = true
	restart = false
)

func at[T any](name string, live bool, k kind[T], field func(*Config) *T) setting {
	return setting{
		name:    name,
		live:    live,
		allowed: k.allowed,
		secret:  k.secret,
		read: func(c *Config, v any) error {
			t, err := k.read(v)
			if err == nil {
				*field(c) = t
			}
			return err
		},
		fault: func(c *Config) string { return k.fault(*field(c)) },
		text:  func(c *Config) string { return k.text(*field(c)) },
		copy:  func(to *Config, from Config) { *field(to) = *field(&from) },
	}
}

// settings is every setting, in the order of the sample.
func settings() []setting {
	return slices.Concat(topSettings(), spiderSettings(), politenessSettings(), docIndexSettings(),
		resolverSettings(), robotsSettings(), serviceSettings(), reservationSettings(), monitorSettings(),
		traceSettings(), logSettings())
}

const (
	day = 24 * time.Hour

	// A slower rate would be a gap of more than eleven days; a faster one than
	// the highest is no limit any more.
	slowest, fastest = 0.000001, 1_000_000

	maxConcurrent = 1024

	maxDomains = 5000 // a reply with more would not fit one Kafka record of 1 MB

	leastRobotsSize = 500 << 10 // RFC 9309 section 2.5: a parser's limit is at least 500 KiB
	longestTTL      = 7 * day   // RFC 8767 section 4: no DNS record longer than this
	longestRefetch  = 365 * day
)

const (
	hostWords   = "a host name or IP address"
	listenWords = "\"host:port\", port 0 to 65535"
	dialWords   = "\"host:port\", port 1 to 65535"
	fileWords   = "the path of a file"
	topicWords  = "letters, digits, \".\", \"_\" and \"-\""
)

func topSettings() []setting {
	return []setting{
		at("Spider_Host", live, optional(hostWords, hostFault),
			func(c *Config) *string { return &c.SpiderHost }),
		at("Spider_Port", live, integer(1, 65535), func(c *Config) *int { return &c.SpiderPort }),
		at("Timeout_Spider_Status", live, seconds(1, 86_400),
			func(c *Config) *time.Duration { return &c.TimeoutSpiderStatus }),
		at("Queue_Count", restart, integer(1, 1<<24), func(c *Config) *int { return &c.QueueCount }),
		at("Queue_Len", live, integer(1, 1_000_000), func(c *Config) *int { return &c.QueueLen }),
		at("Req_Host_Concurrent", live, integer(1, maxConcurrent),
			func(c *Config) *int { return &c.ReqHostConcurrent }),
		at("Req_Host_Per_Sec", live, number(slowest, fastest),
			func(c *Config) *float64 { return &c.ReqHostPerSec }),
		at("allow_insecure", restart, boolean(), func(c *Config) *bool { return &c.AllowInsecure }),
		at(crawlsKey, restart, crawls(), func(c *Config) *[]Crawl { return &c.Crawls }),
		at(canonicalKey, restart, canonicals(), func(c *Config) *[]canonical.Rule { return &c.Canonical }),
		at(rulesKey, live, hostRules(), func(c *Config) *[]HostRule { return &c.Rules }),
	}
}

func spiderSettings() []setting {
	return []setting{
		at("spider.listen", restart, optional(listenWords, listenFault),
			func(c *Config) *string { return &c.Spider.Listen }),
		at("spider.dial", live, list(dialWords, dialFault),
			func(c *Config) *[]string { return &c.Spider.Dial }),
		at("spider.token", restart, secret(), func(c *Config) *Secret { return &c.Spider.Token }),
		at("spider.max_in_flight", live, integer(1, 10_000_000),
			func(c *Config) *int { return &c.Spider.MaxInFlight }),
		at("spider.max_attempts", live, integer(1, 1000),
			func(c *Config) *int { return &c.Spider.MaxAttempts }),
		at("spider.max_fetch", live, span(time.Millisecond, day),
			func(c *Config) *time.Duration { return &c.Spider.MaxFetch }),
		at("spider.tls_cert", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Spider.TLSCert }),
		at("spider.tls_key", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Spider.TLSKey }),
		at("spider.tls_ca", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Spider.TLSCA }),
	}
}

func politenessSettings() []setting {
	return []setting{
		at("leftover.max", live, integer(1, 1_000_000_000), func(c *Config) *int { return &c.Leftover.Max }),
		at("crawl.budget", live, integer(0, 1_000_000_000), func(c *Config) *int { return &c.Crawl.Budget }),
		at("politeness.delay_factor", live, number(0, 1000),
			func(c *Config) *float64 { return &c.Politeness.DelayFactor }),
		at("politeness.max_delay", live, span(0, day),
			func(c *Config) *time.Duration { return &c.Politeness.MaxDelay }),
		at("politeness.patience", live, span(0, day),
			func(c *Config) *time.Duration { return &c.Politeness.Patience }),
		at("politeness.site_per_sec", live, orZero(number(slowest, fastest)),
			func(c *Config) *float64 { return &c.Politeness.SitePerSec }),
		at("politeness.site_concurrent", live, integer(0, maxConcurrent),
			func(c *Config) *int { return &c.Politeness.SiteConcurrent }),
		sharedNetworksSetting(),
		at("vhosts.reject_over", live, integer(1, 1_000_000_000),
			func(c *Config) *int { return &c.VHosts.RejectOver }),
	}
}

func docIndexSettings() []setting {
	return []setting{
		at("docindex.kind", restart, oneOf(KindMemory, KindDisk, KindRedis, KindHTTP),
			func(c *Config) *string { return &c.DocIndex.Kind }),
		at("docindex.path", restart, optional("the path of a folder", pathFault),
			func(c *Config) *string { return &c.DocIndex.Path }),
		at("docindex.sync", restart, oneOf(SyncBatch, SyncInterval, SyncNone),
			func(c *Config) *string { return &c.DocIndex.Sync }),
		at("docindex.memory", restart, size(16<<20, 1<<40), func(c *Config) *int { return &c.DocIndex.Memory }),
		at("docindex.url", restart, optional("an http or https URL without user, query and fragment",
			urlFault), func(c *Config) *string { return &c.DocIndex.URL }),
		at("docindex.addrs", restart, list(dialWords, dialFault),
			func(c *Config) *[]string { return &c.DocIndex.Addrs }),
		at("docindex.prefix", restart, text(prefixWords, prefixFault),
			func(c *Config) *string { return &c.DocIndex.Prefix }),
		at("docindex.token", restart, secret(), func(c *Config) *Secret { return &c.DocIndex.Token }),
		at("docindex.tls_cert", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.DocIndex.TLSCert }),
		at("docindex.tls_key", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.DocIndex.TLSKey }),
		at("docindex.tls_ca", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.DocIndex.TLSCA }),
		at("docindex.seeds", restart, list("paths of files", pathFault),
			func(c *Config) *[]string { return &c.DocIndex.Seeds }),
		at("docindex.batch", live, integer(1, 1_000_000), func(c *Config) *int { return &c.DocIndex.Batch }),
		at("docindex.retry", live, span(time.Millisecond, day),
			func(c *Config) *time.Duration { return &c.DocIndex.Retry }),
		at("docindex.max_retry", live, span(time.Millisecond, day),
			func(c *Config) *time.Duration { return &c.DocIndex.MaxRetry }),
		at("docindex.quarantine", live, span(0, 30*day),
			func(c *Config) *time.Duration { return &c.DocIndex.Quarantine }),
		at("docindex.outcomes_max", live, integer(1, 1_000_000_000),
			func(c *Config) *int { return &c.DocIndex.OutcomesMax }),
		at("docindex.refetch_after.ok", restart, orNever(time.Second, longestRefetch),
			func(c *Config) *time.Duration { return &c.DocIndex.RefetchAfter.OK }),
		at("docindex.refetch_after.gone", restart, orNever(time.Second, longestRefetch),
			func(c *Config) *time.Duration { return &c.DocIndex.RefetchAfter.Gone }),
		at("docindex.refetch_after.error", restart, orNever(time.Second, longestRefetch),
			func(c *Config) *time.Duration { return &c.DocIndex.RefetchAfter.Error }),
	}
}

func resolverSettings() []setting {
	return []setting{
		at("resolver.servers", restart, list("\"ip:port\"", serverFault),
			func(c *Config) *[]string { return &c.Resolver.Servers }),
		at("resolver.timeout", restart, span(time.Millisecond, time.Minute),
			func(c *Config) *time.Duration { return &c.Resolver.Timeout }),
		at("resolver.attempts", restart, integer(1, 20),
			func(c *Config) *int { return &c.Resolver.Attempts }),
		at("resolver.concurrency", restart, integer(1, 65_536),
			func(c *Config) *int { return &c.Resolver.Concurrency }),
		at("resolver.min_ttl", restart, span(0, longestTTL),
			func(c *Config) *time.Duration { return &c.Resolver.MinTTL }),
		at("resolver.max_ttl", restart, span(0, longestTTL),
			func(c *Config) *time.Duration { return &c.Resolver.MaxTTL }),
		at("resolver.negative_ttl", restart, span(0, longestTTL),
			func(c *Config) *time.Duration { return &c.Resolver.NegativeTTL }),
		at("resolver.give_up", live, span(0, longestTTL),
			func(c *Config) *time.Duration { return &c.Resolver.GiveUp }),
		at("resolver.family", restart, oneOf(FamilyAny, FamilyIPv4, FamilyIPv6),
			func(c *Config) *string { return &c.Resolver.Family }),
		at("resolver.allow_networks", restart, networks(),
			func(c *Config) *[]netip.Prefix { return &c.Resolver.AllowNetworks }),
		at("resolver.allow_ports", restart, ports(),
			func(c *Config) *[]int { return &c.Resolver.AllowPorts }),
	}
}

// robots.ttl ends at a day: RFC 9309 section 2.4 wants no copy used for longer.
func robotsSettings() []setting {
	return []setting{
		at("robots.enabled", live, boolean(), func(c *Config) *bool { return &c.Robots.Enabled }),
		at("robots.user_agent", live,
			text("up to 256 printable ASCII characters, first a letter, \"_\" or \"-\"", agentFault),
			func(c *Config) *string { return &c.Robots.UserAgent }),
		at("robots.timeout", live, span(time.Millisecond, 5*time.Minute),
			func(c *Config) *time.Duration { return &c.Robots.Timeout }),
		at("robots.ttl", live, span(time.Millisecond, day),
			func(c *Config) *time.Duration { return &c.Robots.TTL }),
		at("robots.error_ttl", live, span(time.Millisecond, day),
			func(c *Config) *time.Duration { return &c.Robots.ErrorTTL }),
		at("robots.max_crawl_delay", live, span(0, 30*day),
			func(c *Config) *time.Duration { return &c.Robots.MaxCrawlDelay }),
		at("robots.max_size", live, integer(leastRobotsSize, 64<<20),
			func(c *Config) *int { return &c.Robots.MaxSize }),
		at("robots.memory", live, size(1<<20, 1<<40), func(c *Config) *int { return &c.Robots.Memory }),
		at("robots.sitemaps", live, boolean(), func(c *Config) *bool { return &c.Robots.Sitemaps }),
	}
}

func serviceSettings() []setting {
	return []setting{
		at("http.listen", restart, optional(listenWords, listenFault),
			func(c *Config) *string { return &c.HTTP.Listen }),
		at("http.token", restart, secret(), func(c *Config) *Secret { return &c.HTTP.Token }),
		at("http.hosts", restart, list("host names or IP addresses", hostFault),
			func(c *Config) *[]string { return &c.HTTP.Hosts }),
		at("frontier.listen", restart, optional(listenWords, listenFault),
			func(c *Config) *string { return &c.Frontier.Listen }),
		at("frontier.token", restart, secret(), func(c *Config) *Secret { return &c.Frontier.Token }),
		at("frontier.allow_from", restart, networks(),
			func(c *Config) *[]netip.Prefix { return &c.Frontier.AllowFrom }),
		at("frontier.tls_cert", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Frontier.TLSCert }),
		at("frontier.tls_key", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Frontier.TLSKey }),
		at("frontier.max_message", restart, integer(1024, 1<<30),
			func(c *Config) *int { return &c.Frontier.MaxMessage }),
		at("frontier.addresses", live, boolean(), func(c *Config) *bool { return &c.Frontier.Addresses }),
	}
}

func reservationSettings() []setting {
	return []setting{
		at("reservation.kind", restart, oneOf(ReservationNone, ReservationRedis, ReservationGRPC),
			func(c *Config) *string { return &c.Reservation.Kind }),
		at("reservation.addrs", restart, list(dialWords, dialFault),
			func(c *Config) *[]string { return &c.Reservation.Addrs }),
		at("reservation.prefix", restart, text(prefixWords, prefixFault),
			func(c *Config) *string { return &c.Reservation.Prefix }),
		at("reservation.lease", restart, span(time.Second, day),
			func(c *Config) *time.Duration { return &c.Reservation.Lease }),
		at("reservation.penalty", restart, span(0, day),
			func(c *Config) *time.Duration { return &c.Reservation.Penalty }),
		at("reservation.janitor", restart, span(100*time.Millisecond, time.Hour),
			func(c *Config) *time.Duration { return &c.Reservation.Janitor }),
		at("reservation.token", restart, secret(), func(c *Config) *Secret { return &c.Reservation.Token }),
		at("reservation.tls_cert", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Reservation.TLSCert }),
		at("reservation.tls_key", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Reservation.TLSKey }),
		at("reservation.tls_ca", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Reservation.TLSCA })}
}

func monitorSettings() []setting {
	return []setting{
		at("monitor.brokers", restart, list(dialWords, dialFault),
			func(c *Config) *[]string { return &c.Monitor.Brokers }),
		at("monitor.prefix", restart, text(topicWords, topicPrefixFault),
			func(c *Config) *string { return &c.Monitor.Prefix }),
		at("monitor.inbound", restart, list(topicWords, topicFault),
			func(c *Config) *[]string { return &c.Monitor.Inbound }),
		at("monitor.group", restart, text("1 to 255 printable ASCII characters without space", groupFault),
			func(c *Config) *string { return &c.Monitor.Group }),
		at("monitor.appid_topics", restart, boolean(),
			func(c *Config) *bool { return &c.Monitor.AppIDTopics }),
		at("monitor.max_domains", restart, integer(1, maxDomains),
			func(c *Config) *int { return &c.Monitor.MaxDomains }),
		at("monitor.completed_after", restart, span(time.Second, day),
			func(c *Config) *time.Duration { return &c.Monitor.CompletedAfter }),
		at("monitor.security_protocol", restart, oneOf(ProtocolPlain, ProtocolTLS, ProtocolSASL,
			ProtocolSASLTLS), func(c *Config) *string { return &c.Monitor.SecurityProtocol }),
		at("monitor.sasl_mechanism", restart, oneOf(MechanismPlain, MechanismSHA256, MechanismSHA512),
			func(c *Config) *string { return &c.Monitor.SASLMechanism }),
		at("monitor.sasl_username", restart, optional("up to 1024 printable ASCII characters without space",
			tokenFault), func(c *Config) *string { return &c.Monitor.SASLUsername }),
		at("monitor.sasl_password", restart, secret(),
			func(c *Config) *Secret { return &c.Monitor.SASLPassword }),
		at("monitor.tls_ca", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Monitor.TLSCA }),
		at("monitor.tls_cert", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Monitor.TLSCert }),
		at("monitor.tls_key", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Monitor.TLSKey }),
	}
}

func traceSettings() []setting {
	return []setting{
		at("trace.endpoint", restart, optional("an http or https URL without user, query and fragment",
			urlFault), func(c *Config) *string { return &c.Trace.Endpoint }),
		at("trace.sample", live, number(0, 1), func(c *Config) *float64 { return &c.Trace.Sample }),
	}
}

func logSettings() []setting {
	return []setting{
		at("log.level", live, oneOf(LevelTrace, LevelDebug, LevelInfo, LevelWarn, LevelError),
			func(c *Config) *string { return &c.Log.Level }),
		at("log.format", restart, oneOf(FormatAuto, FormatPretty, FormatJSON),
			func(c *Config) *string { return &c.Log.Format }),
		at("log.crawl", restart, optional(fileWords, pathFault),
			func(c *Config) *string { return &c.Log.Crawl }),
	}
}
