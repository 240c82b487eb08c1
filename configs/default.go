package configs

import "time"

// Default is the configuration of an empty settings file: the values of
// urlserver.toml.
func Default() Config {
	return Config{
		SpiderPort:          4100,
		TimeoutSpiderStatus: 120 * time.Second,
		QueueCount:          4096,
		QueueLen:            64,
		ReqHostConcurrent:   1,
		ReqHostPerSec:       0.5,

		Spider: Spider{Listen: "127.0.0.1:4101", MaxInFlight: 10_000, MaxAttempts: 3,
			MaxFetch: time.Hour},
		Leftover: Leftover{Max: 1_000_000},
		Crawl:    CrawlTurns{Budget: 1000},
		Politeness: Politeness{MaxDelay: 5 * time.Minute, Patience: time.Minute,
			SharedNetworks: SharedBuiltin},
		VHosts:      VHosts{RejectOver: 256},
		DocIndex:    defaultDocIndex(),
		Resolver:    defaultResolver(),
		Robots:      defaultRobots(),
		HTTP:        HTTP{Listen: "127.0.0.1:8080"},
		Frontier:    Frontier{MaxMessage: 4 << 20},
		Reservation: defaultReservation(),
		Monitor:     defaultCrawlControl(),
		Trace:       Trace{Sample: 0.001},
		Log:         Log{Level: LevelInfo, Format: FormatAuto},
	}
}

func defaultReservation() Reservation {
	return Reservation{
		Kind:    ReservationNone,
		Addrs:   []string{"127.0.0.1:6379"},
		Lease:   time.Minute,
		Penalty: 10 * time.Second,
		Janitor: 30 * time.Second,
	}
}

func defaultDocIndex() DocIndex {
	return DocIndex{
		Kind:        KindMemory,
		Path:        "urlserver.db",
		Sync:        SyncBatch,
		Memory:      512 << 20,
		Addrs:       []string{"127.0.0.1:6379"},
		Batch:       1000,
		Retry:       time.Second,
		MaxRetry:    time.Minute,
		Quarantine:  5 * time.Minute,
		OutcomesMax: 1_000_000,
	}
}

func defaultResolver() Resolver {
	return Resolver{
		Timeout:     2 * time.Second,
		Attempts:    3,
		Concurrency: 256,
		MinTTL:      time.Minute,
		MaxTTL:      24 * time.Hour,
		NegativeTTL: 5 * time.Minute,
		GiveUp:      5 * time.Minute,
		Family:      FamilyAny,
	}
}

func defaultRobots() Robots {
	return Robots{
		Enabled:       true,
		UserAgent:     "urlserver",
		Timeout:       10 * time.Second,
		TTL:           24 * time.Hour,
		ErrorTTL:      10 * time.Minute,
		MaxCrawlDelay: time.Hour,
		MaxSize:       512_000,
		Memory:        256 << 20,
	}
}

func defaultCrawlControl() CrawlControl {
	return CrawlControl{
		Prefix:           "demo",
		Inbound:          []string{"demo.inbound_actions", "demo.incoming", "demo.incoming_urls"},
		Group:            "demo-group",
		AppIDTopics:      true,
		MaxDomains:       1000,
		CompletedAfter:   10 * time.Second,
		SecurityProtocol: ProtocolPlain,
		SASLMechanism:    MechanismPlain,
	}
}
