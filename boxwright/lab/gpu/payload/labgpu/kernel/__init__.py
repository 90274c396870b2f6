"""What the kernel shows of simulated cards: PCI devices, modules, device nodes, DKMS."""
