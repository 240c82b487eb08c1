package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"urlserver/configs"
	"urlserver/internal/clihelp"
)

const (
	// imageSettings is the settings file of the image and of the packaged service.
	imageSettings = "/etc/urlserver/urlserver.toml"

	// privateNetworks are those whose clients are let in by a daemon that was started with the
	// arguments of the service in Java: loopback, private use (RFC 1918, RFC 4193) and link-local.
	privateNetworks = "127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16," +
		"::1/128,fc00::/7,fe80::/10"
)

// frontierArgs are the arguments of the URL Frontier service in Java: options and KEY=VALUE.
type frontierArgs struct {
	host    string // name that ListNodes tells
	port    string // of the gRPC listener; "": 7071, or what the environment says
	metrics string // port of a listener for /metrics; "": none
	config  string // file with lines of KEY=VALUE; "": none
	keys    map[string]string
}

// option returns the option of a name, or nil.
func (f *frontierArgs) option(name string) *string {
	switch name {
	case "-h", "--hostname":
		return &f.host
	case "-p", "--port":
		return &f.port
	case "-s", "--prometheus_server":
		return &f.metrics
	case "-c", "--config":
		return &f.config
	}
	return nil
}

// isFrontierArgs reports whether a command line is one for the service in Java: it begins with one
// of its options or with KEY=VALUE. -h alone asks for help.
func isFrontierArgs(args []string) bool {
	if len(args) == 0 {
		return false
	}
	name, _, given := strings.Cut(args[0], "=")
	if (&frontierArgs{}).option(name) != nil {
		return given || len(args) > 1
	}
	return given && !strings.HasPrefix(name, "-")
}

// parseFrontierArgs reads a command line for the service in Java, and the file that it names.
func parseFrontierArgs(args []string) (f frontierArgs, err error) {
	f = frontierArgs{host: "localhost", keys: map[string]string{}}
	var pairs []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			pairs = append(pairs, arg)
			continue
		}
		name, value, given := strings.Cut(arg, "=")
		to := f.option(name)
		switch {
		case to == nil:
			return f, clihelp.Usagef("%s is no option of a URL Frontier service; they are -h, -p, -s and -c", name)
		case !given && len(args) == 0:
			return f, clihelp.Usagef("%s needs a value", name)
		case !given:
			value, args = args[0], args[1:]
		}
		*to = value
	}
	if f.config != "" {
		text, err := os.ReadFile(f.config)
		if err != nil {
			return f, fmt.Errorf("-c: %w", err)
		}
		pairs = append(strings.Split(string(text), "\n"), pairs...)
	}
	for _, pair := range pairs {
		if pair = strings.TrimSpace(pair); pair != "" && pair[0] != '#' {
			key, value, _ := strings.Cut(pair, "=")
			f.keys[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return f, nil
}

// backends are the words of docindex.kind for the ends of the names of classes in Java.
var backends = []struct{ class, kind string }{
	{"MemoryFrontierService", configs.KindMemory}, {"RocksDBService", configs.KindDisk},
}

// overrides returns the settings that the arguments stand for, in place of those of the file and of
// environ, and the keys that stand for none.
func (f frontierArgs) overrides(environ []configs.Override) (all []configs.Override, ignored []string,
	err error) {
	add := func(setting, value, name string) {
		all = append(all, configs.Override{Setting: setting, Value: value, Name: name, Source: configs.FromFlag})
	}
	// What needs a token to be open to others, and has none, is off. The service in Java lets all
	// clients in; this one lets in those that are not on the Internet, unless somebody says else.
	for _, listener := range []string{"http", "spider"} {
		if !overridden(environ, listener+".listen", listener+".token") {
			add(listener+".listen", "", "")
		}
	}
	if !overridden(environ, "frontier.token", "frontier.tls_cert", "frontier.allow_from", "allow_insecure") {
		add("frontier.allow_from", privateNetworks, "")
	}
	add("frontier.listen", ":7071", "")
	add("docindex.kind", configs.KindDisk, "")
	all = append(all, environ...)
	if f.port != "" {
		add("frontier.listen", ":"+f.port, "-p")
	}
	for key, value := range f.keys {
		switch {
		case strings.Contains(key, "tls"):
			return nil, nil, clihelp.Usagef("%s: set URLSERVER_FRONTIER_TLS_CERT and "+
				"URLSERVER_FRONTIER_TLS_KEY instead", key)
		case key == "rocksdb.path":
			add("docindex.path", value, key)
			add("docindex.kind", configs.KindDisk, key)
		case key == "implementation":
			kind := ""
			for _, b := range backends {
				if strings.HasSuffix(value, b.class) {
					kind = b.kind
				}
			}
			if kind == "" {
				return nil, nil, clihelp.Usagef("implementation=%s: only those in memory and on RocksDB "+
					"have a counterpart", value)
			}
			add("docindex.kind", kind, key)
		default:
			ignored = append(ignored, key)
		}
	}
	slices.Sort(ignored)
	return all, ignored, nil
}

// overridden reports whether one of settings has a value there.
func overridden(overrides []configs.Override, settings ...string) bool {
	return slices.ContainsFunc(overrides, func(o configs.Override) bool {
		return slices.Contains(settings, o.Setting)
	})
}

// serveFrontier runs the daemon with the arguments of the service in Java until ctx ends.
func serveFrontier(ctx context.Context, args []string, hups <-chan os.Signal, errs io.Writer) error {
	f, err := parseFrontierArgs(args)
	if err != nil {
		return err
	}
	begin := launch{host: f.host, metrics: f.metrics}
	if begin.overrides, begin.ignored, err = f.overrides(configs.Environ(os.Environ())); err != nil {
		return err
	}
	if _, err := os.Stat(imageSettings); err == nil {
		begin.file = imageSettings
	}
	return serve(ctx, begin, hups, errs)
}
