package cluster

import "github.com/slipway-platform/slipway/cluster/syntax"

// MAC is a 48-bit unicast MAC address in Proxmox's form, upper case with colons: BC:24:11:00:01:0B. Lower case is accepted and
// converted to upper case, because Proxmox returns upper case.
type MAC string

// UnmarshalText reads the form described at MAC. Its error is a problem and a remedy, separated by a semicolon.
func (m *MAC) UnmarshalText(text []byte) error {
	if err := wellFormed("mac", text); err != nil {
		return err
	}
	*m = MAC(syntax.NormalMAC(string(text)))
	return nil
}
