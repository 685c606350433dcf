package proxmox

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// form is the type of a configuration value.
type form int

const (
	text    form = iota
	boolean      // 0 or 1; shown as a number
	integer      // shown as a number
	decimal
	drive // of a disk or CD-ROM
	nic
)

// parameter is one option of a VM's configuration.
type parameter struct {
	form      form
	privilege string
	count     int // number of indexed ones, e.g. 31 for scsi0 … scsi30; 0 for an option without index
	check     func(string) string
	rootOnly  bool
}

const (
	cpuPrivilege  = "VM.Config.CPU"
	memPrivilege  = "VM.Config.Memory"
	hwPrivilege   = "VM.Config.HWType"
	optPrivilege  = "VM.Config.Options"
	diskPrivilege = "VM.Config.Disk"
	netPrivilege  = "VM.Config.Network"
	ciPrivilege   = "VM.Config.Cloudinit"
)

// parameters are the options of a VM that Proxmox VE has. Any other option is refused.
var parameters = map[string]parameter{
	"acpi":               {form: boolean, privilege: hwPrivilege},
	"affinity":           {privilege: cpuPrivilege, rootOnly: true},
	"agent":              {privilege: optPrivilege},
	"arch":               {rootOnly: true},
	"args":               {rootOnly: true},
	"audio":              {privilege: hwPrivilege, count: 1},
	"autostart":          {form: boolean, privilege: optPrivilege},
	"balloon":            {form: integer, privilege: memPrivilege},
	"bios":               {privilege: optPrivilege, check: oneOf("seabios", "ovmf")},
	"boot":               {privilege: diskPrivilege},
	"bootdisk":           {privilege: diskPrivilege},
	"cicustom":           {privilege: ciPrivilege},
	"cipassword":         {privilege: ciPrivilege},
	"citype":             {privilege: ciPrivilege, check: oneOf("configdrive2", "nocloud", "opennebula")},
	"ciupgrade":          {form: boolean, privilege: ciPrivilege},
	"ciuser":             {privilege: ciPrivilege},
	"cores":              {form: integer, privilege: cpuPrivilege, check: between(1, 1<<20)},
	"cpu":                {privilege: cpuPrivilege},
	"cpulimit":           {form: decimal, privilege: cpuPrivilege},
	"cpuunits":           {form: integer, privilege: cpuPrivilege, check: between(1, 262144)},
	"description":        {privilege: optPrivilege},
	"efidisk":            {form: drive, privilege: diskPrivilege, count: 1},
	"freeze":             {form: boolean, privilege: "VM.PowerMgmt"},
	"hookscript":         {rootOnly: true},
	"hostpci":            {privilege: hwPrivilege, count: 16},
	"hotplug":            {privilege: hwPrivilege},
	"hugepages":          {rootOnly: true},
	"ide":                {form: drive, privilege: diskPrivilege, count: 4},
	"ipconfig":           {privilege: ciPrivilege, count: 32, check: checkIPConfig},
	"ivshmem":            {rootOnly: true},
	"keephugepages":      {form: boolean, rootOnly: true},
	"keyboard":           {privilege: optPrivilege},
	"kvm":                {form: boolean, privilege: hwPrivilege},
	"localtime":          {form: boolean, privilege: optPrivilege},
	"lock":               {rootOnly: true},
	"machine":            {privilege: hwPrivilege, check: matching(`^(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)(,.*)?$`, "value does not match the regex pattern")},
	"memory":             {privilege: memPrivilege, check: checkMemory},
	"migrate_downtime":   {form: decimal, privilege: optPrivilege},
	"migrate_speed":      {form: integer, privilege: optPrivilege},
	"name":               {privilege: optPrivilege, check: matching(`^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$`, "invalid format - value does not look like a valid DNS name")},
	"nameserver":         {privilege: ciPrivilege, check: checkAddresses},
	"net":                {form: nic, privilege: netPrivilege, count: 32},
	"numa":               {form: boolean, privilege: cpuPrivilege, count: 8},
	"onboot":             {form: boolean, privilege: optPrivilege},
	"ostype":             {privilege: optPrivilege, check: oneOf("other", "wxp", "w2k", "w2k3", "w2k8", "wvista", "win7", "win8", "win10", "win11", "l24", "l26", "solaris")},
	"parallel":           {privilege: hwPrivilege, count: 3},
	"protection":         {form: boolean, privilege: optPrivilege},
	"reboot":             {form: boolean, privilege: optPrivilege},
	"rng":                {privilege: hwPrivilege, count: 1},
	"sata":               {form: drive, privilege: diskPrivilege, count: 6},
	"scsi":               {form: drive, privilege: diskPrivilege, count: 31},
	"scsihw":             {privilege: hwPrivilege, check: oneOf("lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi")},
	"searchdomain":       {privilege: ciPrivilege},
	"serial":             {privilege: hwPrivilege, count: 4, check: matching(`^(/dev/.+|socket)$`, "value does not match the regex pattern")},
	"shares":             {form: integer, privilege: memPrivilege},
	"smbios":             {privilege: hwPrivilege, count: 2},
	"sockets":            {form: integer, privilege: cpuPrivilege, check: between(1, 1<<20)},
	"spice_enhancements": {privilege: hwPrivilege},
	"sshkeys":            {privilege: ciPrivilege},
	"startdate":          {privilege: optPrivilege},
	"startup":            {privilege: optPrivilege},
	"tablet":             {form: boolean, privilege: hwPrivilege},
	"tags":               {privilege: optPrivilege, check: checkTags},
	"tdf":                {form: boolean, privilege: optPrivilege},
	"template":           {form: boolean, privilege: optPrivilege},
	"tpmstate":           {form: drive, privilege: diskPrivilege, count: 1},
	"unused":             {privilege: diskPrivilege, count: 256},
	"usb":                {privilege: hwPrivilege, count: 14},
	"vcpus":              {form: integer, privilege: cpuPrivilege},
	"vga":                {privilege: hwPrivilege},
	"virtio":             {form: drive, privilege: diskPrivilege, count: 16},
	"vmgenid":            {privilege: optPrivilege},
	"vmstatestorage":     {privilege: diskPrivilege},
	"watchdog":           {privilege: hwPrivilege},
}

var indexed = regexp.MustCompile(`^([a-z_]+?)(\d+)$`)

// lookup finds the parameter of a configuration key. "numa" is a boolean, "numa0" a topology.
func lookup(key string) (parameter, bool) {
	if p, ok := parameters[key]; ok && (p.count == 0 || key == "numa") {
		return p, true
	}
	m := indexed.FindStringSubmatch(key)
	if m == nil {
		return parameter{}, false
	}
	p, ok := parameters[m[1]]
	n, err := strconv.Atoi(m[2])
	if !ok || err != nil || n >= p.count {
		return parameter{}, false
	}
	if m[1] == "numa" {
		p.form = text
	}
	return p, true
}

// verify returns what is wrong with a value; empty if it is valid.
func (p parameter) verify(value string) string {
	switch p.form {
	case boolean:
		if !slices.Contains([]string{"0", "1", "yes", "no", "on", "off", "true", "false"}, value) {
			return "type check ('boolean') failed - got '" + value + "'"
		}
	case integer:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return "type check ('integer') failed - got '" + value + "'"
		}
	case decimal:
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "type check ('number') failed - got '" + value + "'"
		}
	case drive:
		return checkDrive(value)
	case nic:
		return checkNIC(value)
	}
	if p.check != nil {
		return p.check(value)
	}
	return ""
}

// undefined is the problem of a parameter that a call does not know.
const undefined = "property is not defined in schema and the schema does not allow additional properties"

// problems returns what is wrong with the parameters of a call.
func (q *request) problems(known map[string]parameter, required ...string) map[string]string {
	problems := map[string]string{}
	for key := range q.form {
		if p, is := known[key]; !is {
			problems[key] = undefined
		} else if problem := p.verify(q.form.Get(key)); problem != "" {
			problems[key] = problem
		}
	}
	for _, key := range required {
		if q.form.Get(key) == "" && problems[key] == "" {
			problems[key] = "property is missing and it is not optional"
		}
	}
	return problems
}

// truthy tells whether a valid boolean is true.
func truthy(value string) bool { return slices.Contains([]string{"1", "yes", "on", "true"}, value) }

func oneOf(values ...string) func(string) string {
	return func(v string) string {
		if slices.Contains(values, v) {
			return ""
		}
		return "value '" + v + "' does not have a value in the enumeration '" + strings.Join(values, ", ") + "'"
	}
}

func between(low, high int64) func(string) string {
	return func(v string) string {
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case err != nil:
			return "type check ('integer') failed - got '" + v + "'"
		case n < low:
			return "value must have a minimum value of " + strconv.FormatInt(low, 10)
		case n > high:
			return "value must have a maximum value of " + strconv.FormatInt(high, 10)
		}
		return ""
	}
}

func matching(pattern, problem string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(v string) string {
		if re.MatchString(v) {
			return ""
		}
		return problem
	}
}

func checkMemory(v string) string { return between(16, 1<<32)(parseProperty(v, "current").main) }

func checkTags(v string) string {
	tag := matching(`(?i)^[a-z0-9_][a-z0-9_\-+.]*$`, "invalid format - invalid characters in tag")
	for _, t := range split(v) {
		if problem := tag(t); problem != "" {
			return problem
		}
	}
	return ""
}

func checkAddresses(v string) string {
	for _, a := range split(v) {
		if _, err := netip.ParseAddr(a); err != nil {
			return "invalid format - value does not look like a valid IP address"
		}
	}
	return ""
}

func checkIPConfig(v string) string {
	p := parseProperty(v, "")
	for key, value := range p.keys {
		prefix, prefixErr := netip.ParsePrefix(value)
		addr, addrErr := netip.ParseAddr(value)
		ok := false
		switch key {
		case "ip":
			ok = value == "dhcp" || prefixErr == nil && prefix.Addr().Is4()
		case "ip6":
			ok = value == "dhcp" || value == "auto" || prefixErr == nil && prefix.Addr().Is6()
		case "gw":
			ok = addrErr == nil && addr.Is4()
		case "gw6":
			ok = addrErr == nil && addr.Is6()
		default:
			return "invalid format - format error\n" + key + ": " + undefined
		}
		if !ok {
			return "invalid format - format error\n" + key + ": invalid format - value does not look like a valid address: '" + value + "'"
		}
	}
	for gateway, address := range map[string]string{"gw": "ip", "gw6": "ip6"} {
		if p.keys[gateway] != "" && p.keys[address] == "" {
			return "invalid format - format error\n" + gateway + ": missing property - '" + gateway + "' requires this property '" + address + "'"
		}
	}
	return ""
}

var mac = regexp.MustCompile(`(?i)^[a-f0-9][02468ace](:[a-f0-9]{2}){5}$`)

// nicModels are the network cards that Proxmox VE offers.
var nicModels = []string{"e1000", "e1000-82540em", "e1000-82544gc", "e1000-82545em", "e1000e", "i82551", "i82557b", "i82559er", "ne2k_isa", "ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3"}

func checkNIC(v string) string {
	n := parseNIC(v)
	switch {
	case !slices.Contains(nicModels, n.model):
		return "invalid format - format error\nmodel: value '" + n.model + "' does not have a value in the enumeration '" + strings.Join(nicModels, ", ") + "'"
	case n.mac != "" && !mac.MatchString(n.mac):
		return "invalid format - format error\nmacaddr: invalid format - value does not look like a valid unicast MAC address"
	case n.tag != "" && between(1, 4094)(n.tag) != "":
		return "invalid format - format error\ntag: " + between(1, 4094)(n.tag)
	}
	return ""
}

var driveKeys = []string{
	"aio", "backup", "bps", "bps_rd", "bps_wr", "cache", "detect_zeroes", "discard", "efitype", "file", "format", "import-from",
	"iops", "iops_max", "iops_rd", "iops_rd_max", "iops_wr", "iops_wr_max", "iothread", "mbps", "mbps_max", "mbps_rd", "mbps_rd_max",
	"mbps_wr", "mbps_wr_max", "media", "pre-enrolled-keys", "queues", "replicate", "rerror", "ro", "serial", "shared", "size", "snapshot",
	"ssd", "version", "werror", "wwn",
}

func checkDrive(v string) string {
	p := parseProperty(v, "file")
	if p.main == "" {
		return "invalid format - format error\nfile: property is missing and it is not optional"
	}
	for key, value := range p.keys {
		if !slices.Contains(driveKeys, key) {
			return "invalid format - format error\n" + key + ": " + undefined
		}
		if key == "size" {
			if _, err := parseSize(value); err != nil {
				return "invalid format - format error\nsize: value does not match the regex pattern"
			}
		}
	}
	if p.main != "none" && p.main != "cdrom" && !strings.Contains(p.main, ":") {
		return "invalid format - format error\nfile: invalid format - unable to parse volume ID '" + p.main + "'"
	}
	return ""
}
