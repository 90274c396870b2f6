"""What went wrong, why, and what to do: signatures as data, and the matcher. Pure: text in, diagnoses out."""

from boxwright.doctor.diagnosis import Diagnosis, Evidence, Report
from boxwright.doctor.doctor import diagnose
from boxwright.doctor.library import signatures
from boxwright.doctor.log import Log
from boxwright.doctor.signature import Signature, SignatureError

__all__ = ["Diagnosis", "Evidence", "Log", "Report", "Signature", "SignatureError", "diagnose", "signatures"]
