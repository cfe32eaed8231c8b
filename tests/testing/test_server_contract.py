from server_mutants import MUTANTS
from store_proofs import ContractProofs

from lamina.state.sqlite import SqliteServerStore
from lamina.testing import ServerStoreContract

pytest_plugins = "pytester"


class TestTheContractOfServerStores(ContractProofs):
    contract = ServerStoreContract
    right = SqliteServerStore
    mutants = MUTANTS
    hole = "test_an_id_and_a_digest_are_taken_once"
