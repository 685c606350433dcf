package main

import (
	"strings"
	"unicode"

	"github.com/ettle/strcase"
)

// member is a module of the SDK and a name in it.
type member struct{ module, name string }

// terraformPrefix is the prefix of all resources and data sources of the Terraform provider.
const terraformPrefix = "proxmox_virtual_environment_"

// resources are the SDK's names that do not follow the rule in token, by the Terraform name without prefix.
var resources = map[string]member{
	"acme_account":                    {"index", "AcmeAccount"},
	"acme_dns_plugin":                 {"index", "AcmeDnsPlugin"},
	"certificate":                     {"index", "Certifi"},
	"cluster_firewall":                {"Network", "Firewall"},
	"cluster_firewall_security_group": {"Network", "FirewallSecurityGroup"},
	"container":                       {"CT", "Container"},
	"dns":                             {"index", "DNS"},
	"file":                            {"Storage", "File"},
	"firewall_alias":                  {"Network", "FirewallAlias"},
	"firewall_ipset":                  {"Network", "FirewallIPSet"},
	"firewall_options":                {"Network", "FirewallOptions"},
	"firewall_rules":                  {"Network", "FirewallRules"},
	"group":                           {"Permission", "Group"},
	"hagroup":                         {"HA", "HAGroup"},
	"haresource":                      {"HA", "HAResource"},
	"network_linux_bridge":            {"Network", "NetworkBridge"},
	"network_linux_vlan":              {"Network", "NetworkVlan"},
	"pool":                            {"Permission", "Pool"},
	"role":                            {"Permission", "Role"},
	"user":                            {"Permission", "User"},
	"vm":                              {"VM", "VirtualMachine"},
	"vm2":                             {"VM", "VirtualMachine2"},
}

// functions is the same for data sources.
var functions = map[string]member{
	"datastores":  {"Storage", "getDatastores"},
	"dns":         {"Network", "getDNS"},
	"group":       {"Permission", "getGroup"},
	"groups":      {"Permission", "getGroups"},
	"hagroup":     {"HA", "getHAGroup"},
	"hagroups":    {"HA", "getHAGroups"},
	"haresource":  {"HA", "getHAResource"},
	"haresources": {"HA", "getHAResources"},
	"hosts":       {"Network", "getHosts"},
	"nodes":       {"Cluster", "getNodes"},
	"pool":        {"Permission", "getPool"},
	"pools":       {"Permission", "getPools"},
	"role":        {"Permission", "getRole"},
	"roles":       {"Permission", "getRoles"},
	"time":        {"Network", "getTime"},
	"user":        {"Permission", "getUser"},
	"users":       {"Permission", "getUsers"},
	"version":     {"Network", "getVersion"},
	"vm":          {"VM", "getVirtualMachine"},
	"vms":         {"VM", "getVirtualMachines"},
}

// resourceToken returns SDK v6's name of a Terraform resource.
func resourceToken(terraform string) (module, name string) {
	if m, ok := resources[strings.TrimPrefix(terraform, terraformPrefix)]; ok {
		return m.module, m.name
	}
	return token(terraform)
}

// functionToken returns SDK v6's name of a Terraform data source.
func functionToken(terraform string) (module, name string) {
	if m, ok := functions[strings.TrimPrefix(terraform, terraformPrefix)]; ok {
		return m.module, m.name
	}
	module, name = token(terraform)
	return module, "get" + name
}

// token applies the SDK's rule: the last word is the name, the words before it are the module.
func token(terraform string) (module, name string) {
	words := strings.Split(strings.TrimPrefix(terraform, terraformPrefix), "_")
	last := len(words) - 1
	module, name = "index", strcase.ToPascal(words[last])
	if last > 0 {
		module = strcase.ToPascal(strings.Join(words[:last], "/"))
	}
	if unicode.IsDigit(rune(name[0])) {
		name = "X" + name
	}
	return module, name
}
