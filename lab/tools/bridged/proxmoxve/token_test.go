package main

import "testing"

func TestToken_NamesResourcesAsTheSDKDoes(t *testing.T) {
	for terraform, want := range map[string]member{
		"proxmox_virtual_environment_vm":                   {"VM", "VirtualMachine"},
		"proxmox_virtual_environment_download_file":        {"Download", "File"},
		"proxmox_virtual_environment_file":                 {"Storage", "File"},
		"proxmox_virtual_environment_network_linux_bridge": {"NetworkLinux", "Bridge"},
		"proxmox_virtual_environment_pool":                 {"index", "Pool"},
	} {
		module, name := resourceToken(terraform)
		if module != want.module || name != want.name {
			t.Errorf("%s: got %s:%s, want %s:%s", terraform, module, name, want.module, want.name)
		}
	}
}

func TestToken_NamesFunctionsAsTheSDKDoes(t *testing.T) {
	for terraform, want := range map[string]member{
		"proxmox_virtual_environment_vm":    {"VM", "getVirtualMachine"},
		"proxmox_virtual_environment_group": {"index", "getGroup"},
	} {
		module, name := functionToken(terraform)
		if module != want.module || name != want.name {
			t.Errorf("%s: got %s:%s, want %s:%s", terraform, module, name, want.module, want.name)
		}
	}
}
