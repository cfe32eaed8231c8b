from pack_mutants import MUTANTS
from store_proofs import ContractProofs

from lamina.state.sqlite import SqlitePackStore
from lamina.testing import PackStoreContract

pytest_plugins = "pytester"


class TestTheContractOfPackStores(ContractProofs):
    contract = PackStoreContract
    right = SqlitePackStore
    mutants = MUTANTS
    hole = "test_pages_of_memories_tile"
