package proxmox

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// control are parameters of a call that are not part of the configuration.
var control = map[string][]string{
	"create": {"node", "vmid", "archive", "bwlimit", "force", "live-restore", "pool", "start", "storage", "unique"},
	"update": {"node", "vmid", "background_delay", "delete", "digest", "force", "revert", "skiplock"},
}

// settings extracts the configuration from a form and verifies it. It returns all problems at once.
func settings(form url.Values, call string) (set map[string]string, remove []string, err error) {
	set = map[string]string{}
	problems := map[string]string{}
	for key, values := range form {
		if slices.Contains(control[call], key) {
			continue
		}
		p, known := lookup(key)
		if !known {
			problems[key] = undefined
			continue
		}
		if problem := p.verify(values[0]); problem != "" {
			problems[key] = problem
			continue
		}
		set[key] = values[0]
	}
	for _, key := range split(form.Get("delete")) {
		if _, known := lookup(key); !known {
			problems["delete"] = "unknown setting '" + key + "'"
		}
		remove = append(remove, key)
	}
	if len(problems) > 0 {
		return nil, nil, invalid(problems)
	}
	return set, remove, nil
}

// checkPrivileges refuses options that the token may not set.
func (q *request) checkPrivileges(id int, set map[string]string, remove []string) error {
	path := "/vms/" + strconv.Itoa(id)
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(set)), remove) {
		p, _ := lookup(key)
		if p.rootOnly {
			return internalError("only root can set '%s' config", key)
		}
		privilege := p.privilege
		if value := set[key]; p.form == drive && isCDROM(parseProperty(value, "file")) && !isCloudInit(parseProperty(value, "file")) {
			privilege = "VM.Config.CDROM"
		}
		if err := q.token.require(path, privilege); err != nil {
			return err
		}
		if value, ok := set[key]; ok && p.form == nic {
			if bridge := parseNIC(value).bridge; bridge != "" {
				if err := q.token.require("/sdn/zones/localnetwork/"+bridge, "SDN.Use"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// normalise returns a value as Proxmox VE stores it. prepareDrive does so for drives.
func normalise(key, value string) string {
	p, _ := lookup(key)
	switch {
	case p.form == boolean:
		return strconv.Itoa(bit(truthy(value)))
	case p.form == nic:
		return normaliseNIC(value)
	case key == "tags":
		tags := split(strings.ToLower(value))
		slices.Sort(tags)
		return strings.Join(slices.Compact(tags), ";")
	}
	return value
}

// change applies settings to a VM's configuration. If a disk cannot be created, it changes nothing. Changes that a running VM cannot take
// over wait; changes that it fails to take over wait too, and are in the error. The caller holds the mutex.
func (c *Cluster) change(m *machine, set map[string]string, remove []string) error {
	config, pending, deletions := maps.Clone(m.config), maps.Clone(m.pending), maps.Clone(m.deletions)
	var created, obsolete []string
	problems := map[string]string{}
	unwait := func(key string) {
		if value, waits := pending[key]; waits && isDrive(key) && volumeOf(value) != volumeOf(config[key]) {
			obsolete = append(obsolete, detach(config, m.id, value))
		}
		delete(pending, key)
		delete(deletions, key)
	}
	for _, key := range remove {
		unwait(key)
		switch _, has := config[key]; {
		case !has:
		case !m.deletesNow(key):
			deletions[key] = true
		case strings.HasPrefix(key, "unused"):
			obsolete = append(obsolete, config[key])
			delete(config, key)
		case isDrive(key):
			obsolete = append(obsolete, removeDrive(config, m.id, key))
		default:
			delete(config, key)
		}
	}
	put := func(key, value string) {
		now, err := c.setsNow(m, key, value)
		unwait(key)
		switch {
		case err != nil:
			problems[key] = err.Error()
			pending[key] = value
		case now || config[key] == value:
			config[key] = value
		default:
			pending[key] = value
		}
	}
	for key, value := range set {
		if !isDrive(key) {
			put(key, normalise(key, value))
		}
	}
	for _, key := range driveOrder {
		value, ok := set[key]
		if !ok {
			continue
		}
		all := maps.Clone(config)
		maps.Copy(all, pending)
		for gone := range deletions {
			delete(all, gone)
		}
		stored, volume, err := c.prepareDrive(m, all, key, value)
		if err != nil {
			for _, id := range created {
				c.free(m.node, id)
			}
			return err
		}
		if volume != "" {
			created = append(created, volume)
		}
		if old, ok := config[key]; ok && volumeOf(old) != volumeOf(stored) {
			if now, err := c.setsNow(m, key, stored); now && err == nil {
				obsolete = append(obsolete, removeDrive(config, m.id, key))
			}
		}
		put(key, stored)
	}
	for _, id := range obsolete {
		c.free(m.node, id)
	}
	m.config, m.pending, m.deletions = config, pending, deletions
	c.plug(m)
	if len(problems) > 0 {
		return invalid(problems)
	}
	return nil
}

// checkBoot refuses a boot order with a device that does not exist.
func checkBoot(config, set map[string]string, remove []string) error {
	for _, dev := range bootOrder(set["boot"]) {
		_, had := config[dev]
		_, gets := set[dev]
		if !had && !gets || slices.Contains(remove, dev) {
			return internalError("invalid bootorder: device '%s' does not exist'", dev)
		}
	}
	return nil
}

func bootOrder(boot string) []string {
	return strings.FieldsFunc(parseProperty(boot, "legacy").keys["order"], func(r rune) bool { return r == ';' })
}

// digest identifies a state of the configuration.
func (m *machine) digest() string {
	h := sha1.New()
	for _, part := range []map[string]string{m.config, m.pending} {
		for _, key := range slices.Sorted(maps.Keys(part)) {
			fmt.Fprintf(h, "%s: %s\n", key, part[key])
		}
		fmt.Fprintln(h, "[PENDING]")
	}
	fmt.Fprintln(h, slices.Sorted(maps.Keys(m.deletions)))
	return hex.EncodeToString(h.Sum(nil))
}

// checkDigest refuses a request for another state of the configuration, if it names one.
func (q *request) checkDigest(m *machine) error {
	if d := q.form.Get("digest"); d != "" && d != m.digest() {
		return internalError("detected modified configuration - file changed by other user? Try again.")
	}
	return nil
}

// describeConfig is the configuration as the API returns it: booleans and integers as numbers, other values as text.
// Unless current values are asked for, it includes the waiting changes.
func (m *machine) describeConfig(current bool) map[string]any {
	config := m.config
	if !current {
		config = m.merged()
	}
	out := map[string]any{"digest": m.digest()}
	for key, value := range config {
		out[key] = hide(key, value)
		p, _ := lookup(key)
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && (p.form == boolean || p.form == integer) {
			out[key] = n
		}
	}
	if m.lock != "" {
		out["lock"] = m.lock
	}
	return out
}

func getConfig(q *request) (any, error) {
	return q.withMachine(func(m *machine) (any, error) { return m.describeConfig(q.flag("current")), nil }, "VM.Audit")
}
