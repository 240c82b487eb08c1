//go:build faults

package hostslots

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestTwinFindsFaults runs the twin in processes with one rule of the two levels broken each.
func TestTwinFindsFaults(t *testing.T) {
	const env = "HOSTSLOTS_FAULT"
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil {
		Fault = fault(n)
		TestSlotsAgainstTwin(t)
		return
	}
	for name, f := range map[string]fault{
		"gap of a site": FaultSiteGap, "open requests of a site": FaultSiteOpen,
		"Retry-After binds the address": FaultNeighbours, "an address does not back off": FaultAddressBackoff,
		"cap ignored": FaultCap, "pace not carried": FaultCarry,
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestTwinFindsFaults$")
			cmd.Env = append(os.Environ(), env+"="+strconv.Itoa(int(f)))
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("the twin finds nothing:\n%s", out)
			}
		})
	}
}
