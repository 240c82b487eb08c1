// Package clihelp has what the programs share: manual page, shell completion, version, output and log.
package clihelp

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Note is an entry in a list of a manual page.
type Note struct{ Name, Text string }

// Man returns a hidden command, for packages, that prints the manual page of the command to which
// it is added. files and environment are the lists in these sections.
func Man(files, environment []Note) *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page",
		Hidden: true,
		Args:   Takes(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page manPage
			page.write(cmd.Root(), files, environment)
			_, err := io.WriteString(cmd.OutOrStdout(), page.String())
			return err
		},
	}
}

// manPage builds a page in the man(7) language.
type manPage struct{ strings.Builder }

func (m *manPage) write(root *cobra.Command, files, environment []Note) {
	name := root.Name()
	m.line(`.TH %s 1 "" "" "User Commands"`, strings.ToUpper(name))
	m.line(".SH NAME\n%s \\- %s", name, roff(strings.ToLower(root.Short[:1])+root.Short[1:]))
	m.line(".SH SYNOPSIS\n.B %s\n.I COMMAND\n[ARGUMENT...]", name)
	m.line(".SH DESCRIPTION")
	m.paragraphs(root.Long)
	m.line(".SH COMMANDS")
	m.commands(root)
	m.notes("FILES", "I", files)
	m.notes("ENVIRONMENT", "B", environment)
	m.line(".SH EXIT STATUS\n0: done. 1: failed. 2: wrong usage.")
}

func (m *manPage) notes(title, font string, notes []Note) {
	m.line(".SH %s", title)
	for _, n := range notes {
		m.line(".TP\n.%s %s\n%s", font, roff(n.Name), roff(n.Text))
	}
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
			if cmd.Example != "" {
				m.line(".PP\nExample:")
				m.paragraphs(cmd.Example)
			}
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

// paragraphs writes text. It keeps the line ends of indented lines, which are examples.
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

// roff escapes text for troff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
