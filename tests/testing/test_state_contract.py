from state_mutants import MUTANTS
from store_proofs import ContractProofs

from lamina.state.sqlite import SqliteStateStore
from lamina.testing import StateStoreContract

pytest_plugins = "pytester"


class TestTheContractOfStateStores(ContractProofs):
    contract = StateStoreContract
    right = SqliteStateStore
    mutants = MUTANTS
    hole = "test_pages_of_threads_tile"
