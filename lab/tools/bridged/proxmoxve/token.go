package main

import (
	"strings"
	"unicode"

	"github.com/ettle/strcase"
)

// member is a name inside a module of the SDK.
type member struct{ module, name string }

// The SDK's names that the rule in token does not yield.
var (
	resources = map[string]member{
		"proxmox_virtual_environment_vm":   {"VM", "VirtualMachine"},
		"proxmox_virtual_environment_vm2":  {"VM", "VirtualMachine2"},
		"proxmox_virtual_environment_file": {"Storage", "File"},
	}
	functions = map[string]member{
		"proxmox_virtual_environment_vm":         {"VM", "getVirtualMachine"},
		"proxmox_virtual_environment_vms":        {"VM", "getVirtualMachines"},
		"proxmox_virtual_environment_nodes":      {"Cluster", "getNodes"},
		"proxmox_virtual_environment_datastores": {"Storage", "getDatastores"},
		"proxmox_virtual_environment_version":    {"Network", "getVersion"},
	}
)

// resourceToken names a Terraform resource as SDK v6 does.
func resourceToken(terraform string) (module, name string) {
	if m, ok := resources[terraform]; ok {
		return m.module, m.name
	}
	return token(terraform)
}

// functionToken names a Terraform data source as SDK v6 does.
func functionToken(terraform string) (module, name string) {
	if m, ok := functions[terraform]; ok {
		return m.module, m.name
	}
	module, name = token(terraform)
	return module, "get" + name
}

// token applies the SDK's rule: the last word is the name, the words before it are the module.
func token(terraform string) (module, name string) {
	words := strings.Split(strings.TrimPrefix(terraform, "proxmox_virtual_environment_"), "_")
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
