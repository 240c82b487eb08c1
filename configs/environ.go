package configs

import (
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// EnvPrefix is what the names of variables begin with that stand for settings:
// URLSERVER_DOCINDEX_KIND is docindex.kind.
const EnvPrefix = "URLSERVER_"

// LoadEnv is Load, with variables of the environment ("NAME=value") in place of what the file says.
// A value is written as in the file, but a string needs no quotes, and a list may be written with
// commas between. Variables that name no setting are left alone: those of client commands are among
// them, and those that container platforms make. [[rules]] have no variable.
func LoadEnv(path string, environ []string) (Config, error) {
	data, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	return parseFiles(path, data, environ)
}

// envName is the variable of a setting.
func envName(setting string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(setting, ".", "_"))
}

// takeEnviron puts what the environment says into the configuration, or notes what is wrong with
// it.
func (r *reader) takeEnviron(environ []string) {
	values := map[string]string{}
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && strings.HasPrefix(name, EnvPrefix) {
			values[name] = value
		}
	}
	for _, s := range settings() {
		value, ok := values[envName(s.name)]
		if !ok || s.name == rulesKey {
			continue
		}
		name := lower(s.name)
		r.set[name] = 0
		delete(r.bad, name)
		if err := readEnv(&r.config, s, value); err != nil {
			r.bad[name] = true
			r.mistakes = append(r.mistakes, Mistake{Key: envName(s.name), Problem: err.Error(), Allowed: s.allowed})
			continue
		}
		r.config.environ = append(r.config.environ, s.name)
	}
}

// readEnv sets one setting: by the value as TOML, else as a string, else as a list of strings.
func readEnv(c *Config, s setting, value string) (err error) {
	var m map[string]any
	if _, wrong := toml.Decode("v = "+value, &m); wrong == nil && len(m) == 1 && s.read(c, m["v"]) == nil {
		return nil
	}
	if err = s.read(c, value); err == nil {
		return nil
	}
	var list []any
	for _, one := range strings.Split(value, ",") {
		list = append(list, strings.TrimSpace(one))
	}
	if s.read(c, list) == nil {
		return nil
	}
	return err
}

// FromEnviron reports whether a setting has its value from the environment.
func (c Config) FromEnviron(setting string) bool { return slices.Contains(c.environ, setting) }
