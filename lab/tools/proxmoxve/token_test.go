package main

import (
	"context"
	"slices"
	"testing"
)

// The SDK's tokens, as its Go code registers them.
var sdkResources = []string{
	"proxmoxve:Apt/repository:Repository",
	"proxmoxve:Apt/standard/repository:Repository",
	"proxmoxve:CT/container:Container",
	"proxmoxve:Cluster/options:Options",
	"proxmoxve:Download/file:File",
	"proxmoxve:HA/hAGroup:HAGroup",
	"proxmoxve:HA/hAResource:HAResource",
	"proxmoxve:Hardware/mapping/pci:Pci",
	"proxmoxve:Hardware/mapping/usb:Usb",
	"proxmoxve:Network/firewall:Firewall",
	"proxmoxve:Network/firewallAlias:FirewallAlias",
	"proxmoxve:Network/firewallIPSet:FirewallIPSet",
	"proxmoxve:Network/firewallOptions:FirewallOptions",
	"proxmoxve:Network/firewallRules:FirewallRules",
	"proxmoxve:Network/firewallSecurityGroup:FirewallSecurityGroup",
	"proxmoxve:Network/networkBridge:NetworkBridge",
	"proxmoxve:Network/networkVlan:NetworkVlan",
	"proxmoxve:Permission/group:Group",
	"proxmoxve:Permission/pool:Pool",
	"proxmoxve:Permission/role:Role",
	"proxmoxve:Permission/user:User",
	"proxmoxve:Storage/file:File",
	"proxmoxve:User/token:Token",
	"proxmoxve:VM/virtualMachine:VirtualMachine",
	"proxmoxve:index/acl:Acl",
	"proxmoxve:index/acmeAccount:AcmeAccount",
	"proxmoxve:index/acmeDnsPlugin:AcmeDnsPlugin",
	"proxmoxve:index/certifi:Certifi",
	"proxmoxve:index/dNS:DNS",
	"proxmoxve:index/hosts:Hosts",
	"proxmoxve:index/time:Time",
}

var sdkFunctions = []string{
	"proxmoxve:Acme/getAccount:getAccount",
	"proxmoxve:Acme/getAccounts:getAccounts",
	"proxmoxve:Acme/getPlugin:getPlugin",
	"proxmoxve:Acme/getPlugins:getPlugins",
	"proxmoxve:Apt/getRepository:getRepository",
	"proxmoxve:Apt/standard/getRepository:getRepository",
	"proxmoxve:Cluster/getNodes:getNodes",
	"proxmoxve:HA/getHAGroup:getHAGroup",
	"proxmoxve:HA/getHAGroups:getHAGroups",
	"proxmoxve:HA/getHAResource:getHAResource",
	"proxmoxve:HA/getHAResources:getHAResources",
	"proxmoxve:Hardware/getMappings:getMappings",
	"proxmoxve:Hardware/mapping/getPci:getPci",
	"proxmoxve:Hardware/mapping/getUsb:getUsb",
	"proxmoxve:Network/getDNS:getDNS",
	"proxmoxve:Network/getHosts:getHosts",
	"proxmoxve:Network/getTime:getTime",
	"proxmoxve:Network/getVersion:getVersion",
	"proxmoxve:Permission/getGroup:getGroup",
	"proxmoxve:Permission/getGroups:getGroups",
	"proxmoxve:Permission/getPool:getPool",
	"proxmoxve:Permission/getPools:getPools",
	"proxmoxve:Permission/getRole:getRole",
	"proxmoxve:Permission/getRoles:getRoles",
	"proxmoxve:Permission/getUser:getUser",
	"proxmoxve:Permission/getUsers:getUsers",
	"proxmoxve:Storage/getDatastores:getDatastores",
	"proxmoxve:VM/getVirtualMachine:getVirtualMachine",
	"proxmoxve:VM/getVirtualMachines:getVirtualMachines",
	"proxmoxve:index/getNode:getNode",
}

func TestProvider_NamesEverythingAsTheSDKDoes(t *testing.T) {
	info, err := newProviderInfo(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var resources, functions []string
	for _, r := range info.Resources {
		resources = append(resources, string(r.Tok))
	}
	for _, f := range info.DataSources {
		functions = append(functions, string(f.Tok))
	}
	for _, want := range sdkResources {
		if !slices.Contains(resources, want) {
			t.Errorf("no resource %s", want)
		}
	}
	for _, want := range sdkFunctions {
		if !slices.Contains(functions, want) {
			t.Errorf("no function %s", want)
		}
	}
}

// The defaults that make a careless program's VM change on every update have to stay: the released plugin has them.
func TestProvider_KeepsUpstreamsDefaults(t *testing.T) {
	info, err := newProviderInfo(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	vm := info.P.ResourcesMap().Get(terraformVM).Schema()
	for _, block := range []string{"cdrom", "disk"} {
		if value, err := vm.Get(block).DefaultValue(); err != nil || value == nil {
			t.Errorf("%s: default %v, %v", block, value, err)
		}
	}
}
