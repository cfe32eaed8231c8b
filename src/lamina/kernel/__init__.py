"""The kernel: takes intents, computes their context, lets an agent answer, keeps what was said."""

from lamina.kernel.auto_save import SaveReport
from lamina.kernel.kernel import Kernel
from lamina.kernel.maintenance import MaintenanceReport
from lamina.kernel.model_router import ModelRouter, Task
from lamina.kernel.tenants import TenantKernels

__all__ = ["Kernel", "MaintenanceReport", "ModelRouter", "SaveReport", "Task", "TenantKernels"]
