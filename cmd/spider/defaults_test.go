package main

import (
	"testing"

	"urlserver/configs"
	"urlserver/spider"
)

// A spider that reports less often than the daemon expects looks dead to it.
func TestStatusTimeoutIsTheDaemons(t *testing.T) {
	if want := configs.Default().TimeoutSpiderStatus; spider.DefaultStatusTimeout != want {
		t.Errorf("the spider's status timeout is %v by default; the daemon's is %v", spider.DefaultStatusTimeout, want)
	}
}
