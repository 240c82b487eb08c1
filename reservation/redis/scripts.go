package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

//go:embed scripts/*.lua
var files embed.FS

// script is one operation: its text, and the SHA-1 by which Redis names it.
type script struct{ text, sha string }

// scripts are all operations.
type scripts struct {
	add, turn, try, extend, done, remove script
	bind, alias, join, getAlias          script
	stats, explain                       script
	worker, janitor                      script
	arrive, hold                         script
}

// newScripts builds the operations with the text of a clock: clock.lua, or another one in tests.
func newScripts(clock string) (s scripts) {
	clock += read("lease")
	core := read("core")
	for name, at := range map[string]*script{
		"add": &s.add, "turn": &s.turn, "try": &s.try, "extend": &s.extend, "done": &s.done,
		"delete": &s.remove, "bind": &s.bind, "alias": &s.alias, "join": &s.join, "getalias": &s.getAlias,
		"stats":   &s.stats,
		"explain": &s.explain, "worker": &s.worker, "janitor": &s.janitor, "arrive": &s.arrive,
		"hold": &s.hold,
	} {
		text := clock + core + read(name)
		switch name {
		case "turn":
			text = clock + read(name+".quick") + core + read(name)
		case "alias", "join":
			text = clock + core + read("aliases") + read(name)
		case "add", "try", "extend", "delete":
			text += read("each")
		}
		sum := sha1.Sum([]byte(text)) // Redis' name of the script
		*at = script{text: text, sha: hex.EncodeToString(sum[:])}
	}
	return s
}

func read(name string) string {
	text, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
