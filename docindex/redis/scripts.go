package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"sync"
)

//go:embed scripts/*.lua
var files embed.FS

// script is one operation. load returns its text, and the SHA-1 sum by which Redis knows it. The
// first call of load links the script, because most daemons use none.
type script struct{ load func() (text, sha string) }

// All operations. The file of each describes its arguments and its answer.
var (
	putScript       = read("put")
	peekScript      = read("peek")
	takeScript      = read("take")
	dueScript       = read("due")
	pickScript      = read("pick")
	claimScript     = read("claim")
	unclaimScript   = read("unclaim")
	readyScript     = read("ready")
	serveScript     = read("serve")
	lateScript      = read("late")
	putOffScript    = read("putoff")
	outScript       = read("out")
	stayScript      = read("stay")
	outcomeScript   = read("outcome")
	returnScript    = read("return")
	getScript       = read("get")
	findScript      = read("find")
	countScript     = read("count")
	lookScript      = read("look")
	heartbeatScript = read("heartbeat")
	queuesScript    = read("queues")
	listScript      = read("list")
	heldScript      = read("held")
	dropScript      = read("drop")
	freeScript      = read("free")
	purgeScript     = read("purge")
	setScript       = read("set")
	refreshScript   = read("refresh")
	settingsScript  = read("settings")
	nameScript      = read("name")
	whereScript     = read("where")
	releaseScript   = read("release")
	usesScript      = read("uses")
	rowsScript      = read("rows")
	changesScript   = read("changes")
	refuseScript    = read("refuse")
	membersScript   = read("members")
	cancelScript    = read("cancel")
	mineScript      = read("mine")
	endedScript     = read("ended")
	throughScript   = read("through")
	purgedScript    = read("purged")
	ackScript       = read("ack")
	endingScript    = read("ending")
	settleScript    = read("settle")
	seeScript       = read("see")
	awayScript      = read("away")
	inboxScript     = read("inbox")
	mendScript      = read("mend")
	pagesScript     = read("pages")
	domainsScript   = read("domains")
	asideScript     = read("aside")
	pausedScript    = read("paused")

	crawlSettingsScript = read("crawlsettings")
)

// shared is the code that scripts share.
var shared = sync.OnceValue(func() *sharedCode {
	return parse(file("core") + file("crawls") + file("documents") + file("shapes"))
})

func read(name string) *script {
	return newScript(func() string {
		return "return (function()\n" + file(name) + "end)()\n" // a Lua function may have 200 locals
	})
}

func newScript(code func() string) *script {
	return &script{sync.OnceValues(func() (text, sha string) {
		text = shared().link(code())
		sum := sha1.Sum([]byte(text))
		return text, hex.EncodeToString(sum[:])
	})}
}

func file(name string) string {
	text, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
