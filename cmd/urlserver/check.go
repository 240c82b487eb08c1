package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"urlserver/configs"
)

func checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a settings file",
		Long: "Reads a settings file as serve does and tells all mistakes in it, with line, key and what is allowed.\n" +
			"Exit status 1 if there are any. Warns of tokens that are short, and of secrets in a file that others can read.",
		Example: "  urlserver check my.toml",
		Args:    takes(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := configs.Load(args[0])
			if err != nil {
				return settingsError(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: no mistakes\n", args[0])
			for _, w := range warningsOf(args[0], cfg) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", args[0], w)
			}
			return nil
		},
	}
}

// shortToken is how many bytes a token has to have to be too long to be tried out: 16 of letters and digits are 95 bits.
const shortToken = 16

// warningsOf is what is allowed and not wise.
func warningsOf(file string, cfg configs.Config) (all []string) {
	for _, t := range []struct {
		name  string
		token configs.Secret
	}{
		{"spider.token", cfg.Spider.Token}, {"http.token", cfg.HTTP.Token}, {"frontier.token", cfg.Frontier.Token},
	} {
		if n := len(t.token); n > 0 && n < shortToken {
			all = append(all, fmt.Sprintf("%s has %d characters and may be guessed: take %d or more that nobody knows, as from openssl rand -hex 16", t.name, n, shortToken))
		}
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 && len(cfg.Secrets()) > 0 {
		all = append(all, "it has tokens or passwords in it, and every user of this machine can read it: chmod o-r "+file)
	}
	return all
}

// settingsError puts several mistakes below each other.
func settingsError(err error) error {
	if _, several := mistakesOf(err); several {
		return fmt.Errorf("settings refused:\n%w", err)
	}
	return err
}
