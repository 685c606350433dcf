package proxmox

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// Token is an API token that the cluster accepts.
type Token struct {
	ID     string // USER@REALM!TOKENID, e.g. "root@pam!slipway"
	Secret string // any text; usually a UUID
	// Privileges of the token, everywhere in the cluster, e.g. "VM.Allocate"; nil means all. Privileges on single
	// objects are not modelled.
	Privileges []string
}

// Privileges are all privileges that the simulated calls require, except for reading the guest agent, whose privilege depends on the
// version, and for changing HA resources, which Slipway does not do (Sys.Console).
var Privileges = []string{
	"Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit", "SDN.Use", "Sys.Audit", "Sys.Modify",
	"VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk",
	"VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.Migrate", "VM.PowerMgmt",
}

// agentPrivilege is the privilege to ask the guest agent. Proxmox VE 9 has no VM.Monitor.
func (c *Cluster) agentPrivilege() string {
	if c.before(9, 0) {
		return "VM.Monitor"
	}
	return "VM.GuestAgent.Audit"
}

func (t *Token) has(privilege string) bool {
	return t.Privileges == nil || slices.Contains(t.Privileges, privilege)
}

// require refuses unless the token has every privilege.
func (t *Token) require(path string, privileges ...string) error {
	for _, p := range privileges {
		if !t.has(p) {
			return forbidden(path, p)
		}
	}
	return nil
}

// user and name are the two parts of the token's id.
func (t *Token) user() string { user, _, _ := strings.Cut(t.ID, "!"); return user }
func (t *Token) name() string { _, name, _ := strings.Cut(t.ID, "!"); return name }

// authenticate returns the token of a request.
func (c *Cluster) authenticate(r *http.Request) (*Token, error) {
	refuse := func(reason string) error { return &apiError{code: http.StatusUnauthorized, reason: reason} }
	header, ok := strings.CutPrefix(r.Header.Get("Authorization"), "PVEAPIToken=")
	if !ok {
		return nil, refuse("No ticket")
	}
	id, secret, ok := strings.Cut(header, "=")
	if !ok || !strings.Contains(id, "!") {
		return nil, refuse("no valid API token")
	}
	for _, t := range c.cfg.Tokens {
		if t.ID != id {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(t.Secret), []byte(secret)) != 1 {
			return nil, refuse("invalid token value!")
		}
		return c.withoutLostPrivileges(t), nil
	}
	user, name, _ := strings.Cut(id, "!")
	return nil, refuse("no such token '" + name + "' for user '" + user + "'")
}
