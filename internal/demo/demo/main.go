// Command demo is "urlserver demo" alone. It compiles in a third of the time, because it needs no
// index on disk, no Redis and no Kafka.
package main

import (
	"fmt"
	"os"

	"urlserver/internal/clihelp"
	"urlserver/internal/demo"
)

func main() {
	cmd := demo.Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ctx, _ := clihelp.Interrupted()
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
