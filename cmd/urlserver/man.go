package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand is for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page",
		Hidden: true,
		Args:   takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page manPage
			page.write(cmd.Root())
			_, err := io.WriteString(cmd.OutOrStdout(), page.String())
			return err
		},
	}
}

// manPage is in the words of man(7).
type manPage struct{ strings.Builder }

func (m *manPage) write(root *cobra.Command) {
	name := root.Name()
	m.line(`.TH %s 1 "" "" "User Commands"`, strings.ToUpper(name))
	m.line(".SH NAME\n%s \\- %s", name, roff(strings.ToLower(root.Short[:1])+root.Short[1:]))
	m.line(".SH SYNOPSIS\n.B %s\n.I COMMAND\n[ARGUMENT...]", name)
	m.line(".SH DESCRIPTION")
	m.paragraphs(root.Long)
	m.line(".SH COMMANDS")
	m.commands(root)
	m.line(".SH FILES\n.TP\n.I /etc/%s/%[1]s.toml\nThe settings of the packaged service; each is explained there.", name)
	m.line(".SH ENVIRONMENT\n.TP\n.B %s\nhttp.token of the daemon, for commands that ask one.", tokenEnv)
}

func (m *manPage) commands(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		if cmd.Runnable() {
			m.line(".SS \"%s\"", roff(cmd.UseLine()))
			long := cmd.Long
			if long == "" {
				long = cmd.Short + "."
			}
			m.paragraphs(long)
			cmd.LocalFlags().VisitAll(m.flag)
		}
		m.commands(cmd)
	}
}

func (m *manPage) flag(f *pflag.Flag) {
	if f.Hidden || f.Name == "help" {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	m.line(".TP\n.B \\-\\-%s \\fI%s\\fR\n%s", roff(f.Name), roff(value), roff(usage))
	if f.DefValue != "" && f.DefValue != "false" {
		m.line("(default: %s)", roff(f.DefValue))
	}
}

// paragraphs keeps the line ends of indented lines, which are examples.
func (m *manPage) paragraphs(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			m.line(".PP")
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			m.line(".br\n\\ \\ %s\n.br", roff(strings.TrimSpace(line)))
		default:
			m.line("%s", roff(line))
		}
	}
}

func (m *manPage) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// roff is text with nothing in it that troff would take for its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
