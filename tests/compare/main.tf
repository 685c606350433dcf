# What a user would write instead of TalosCluster: the same machines, by the same two providers. The test fills cluster.auto.tfvars.json with
# what Slipway declared for the same cluster.
terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
    talos   = { source = "siderolabs/talos" }
  }
}

variable "cluster" {
  type = object({
    name               = string
    proxmox            = string
    api                = string
    factory            = string
    schematic          = string
    talos_version      = string
    kubernetes_version = string
    iso_datastore      = string
    nodes = map(object({
      host      = string
      vm_id     = number
      role      = string
      cores     = number
      memory    = number
      mac       = string
      bridge    = string
      address   = string
      cidr      = string
      gateway   = string
      resolvers = list(string)
      datastore = string
      disks     = list(number)
      patches   = list(string)
    }))
  })
}

locals {
  nodes          = var.cluster.nodes
  control_planes = sort([for name, node in local.nodes : node.address if node.role == "controlplane"])
  workers        = [for name, node in local.nodes : node.address if node.role == "worker"]
  schematic      = talos_image_factory_schematic.this.id
  installer      = "${replace(var.cluster.factory, "https://", "")}/nocloud-installer/${local.schematic}:${var.cluster.talos_version}"
}

provider "proxmox" {
  endpoint = var.cluster.proxmox
}

resource "talos_image_factory_schematic" "this" {
  schematic = var.cluster.schematic
}

resource "proxmox_virtual_environment_download_file" "iso" {
  for_each     = toset([for node in local.nodes : node.host])
  content_type = "iso"
  datastore_id = var.cluster.iso_datastore
  node_name    = each.key
  url          = "${var.cluster.factory}/image/${local.schematic}/${var.cluster.talos_version}/nocloud-amd64.iso"
  file_name    = "talos-${each.key}.iso"
  overwrite    = false
}

resource "proxmox_virtual_environment_vm" "node" {
  for_each        = local.nodes
  name            = each.key
  node_name       = each.value.host
  vm_id           = each.value.vm_id
  bios            = "ovmf"
  machine         = "q35"
  scsi_hardware   = "virtio-scsi-single"
  boot_order      = ["scsi0", "ide0"]
  stop_on_destroy = true

  operating_system { type = "l26" }
  agent {
    enabled = true
    timeout = "3m"
  }
  cpu {
    cores = each.value.cores
    type  = "host"
  }
  memory { dedicated = each.value.memory }
  efi_disk {
    datastore_id = each.value.datastore
    file_format  = "raw"
    type         = "4m"
  }
  cdrom {
    enabled   = true
    file_id   = proxmox_virtual_environment_download_file.iso[each.value.host].id
    interface = "ide0"
  }
  dynamic "disk" {
    for_each = each.value.disks
    content {
      datastore_id = each.value.datastore
      interface    = "scsi${disk.key}"
      file_format  = "raw"
      size         = disk.value
      iothread     = true
      discard      = "on"
      ssd          = true
    }
  }
  network_device {
    bridge      = each.value.bridge
    mac_address = each.value.mac
  }
  initialization {
    datastore_id = each.value.datastore
    interface    = "ide2"
    dns { servers = each.value.resolvers }
    ip_config {
      ipv4 {
        address = each.value.cidr
        gateway = each.value.gateway
      }
    }
  }
}

resource "talos_machine_secrets" "this" {
  talos_version = var.cluster.talos_version
}

data "talos_machine_configuration" "node" {
  for_each           = local.nodes
  cluster_name       = var.cluster.name
  cluster_endpoint   = var.cluster.api
  machine_type       = each.value.role
  machine_secrets    = talos_machine_secrets.this.machine_secrets
  talos_version      = var.cluster.talos_version
  kubernetes_version = var.cluster.kubernetes_version
  docs               = false
  examples           = false
  config_patches     = concat([yamlencode({ machine = { install = { image = local.installer } } })], each.value.patches)
}

resource "talos_machine_configuration_apply" "node" {
  for_each                    = local.nodes
  depends_on                  = [proxmox_virtual_environment_vm.node]
  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.node[each.key].machine_configuration
  node                        = each.value.address
}

resource "talos_machine_bootstrap" "this" {
  depends_on           = [talos_machine_configuration_apply.node]
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.control_planes[0]
}

data "talos_cluster_health" "this" {
  depends_on             = [talos_machine_bootstrap.this]
  client_configuration   = talos_machine_secrets.this.client_configuration
  endpoints              = local.control_planes
  control_plane_nodes    = local.control_planes
  worker_nodes           = local.workers
  skip_kubernetes_checks = true # there is no CNI yet
}

resource "talos_cluster_kubeconfig" "this" {
  depends_on           = [data.talos_cluster_health.this]
  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = local.control_planes[0]
}

output "kubeconfig" {
  value     = talos_cluster_kubeconfig.this.kubeconfig_raw
  sensitive = true
}

data "talos_client_configuration" "this" {
  cluster_name         = var.cluster.name
  client_configuration = talos_machine_secrets.this.client_configuration
  endpoints            = local.control_planes
  nodes                = [for node in local.nodes : node.address]
}

output "talosconfig" {
  value     = data.talos_client_configuration.this.talos_config
  sensitive = true
}
